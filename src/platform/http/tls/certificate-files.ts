import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { createPeriodic } from '../../concurrency/periodic.ts';
import type { Config } from '../../config/config.ts';
import { ConfigError, type ConfigProblem } from '../../errors.ts';
import { readBoundedFile } from '../../files/read-file.ts';
import {
  type CertificateSource,
  createHeldCertificates,
  type KeyPair,
  type ServedCertificate,
} from './certificate-source.ts';
import { readAuthorities, readCertificate, readRevocationLists } from './read-certificate.ts';

/** The files of `Hub.certificates` and `Hub.client_revocation_lists`, read again when they change. */
export interface CertificateFiles extends CertificateSource, Disposable {
  /** Whether the files hold what is served, or what the hub cannot use. */
  states(): readonly { readonly certificate: ServedCertificate; readonly isCurrent: boolean }[];
  /** Reads them now. Never throws. */
  refresh(): Promise<void>;
}

const readAgainMs = 5_000;
const maxFileBytes = 256 * 1024;
const maxListBytes = 8 * 1024 * 1024;

/**
 * Reads the files of `Hub.certificates`. What can be read now has every later version taken too, once it can be used;
 * until then the former one stays. Throws a ConfigError for what cannot be used to begin with.
 */
export async function openCertificateFiles({
  config,
  log,
}: {
  readonly config: Pick<Config, 'Hub' | 'directory'>;
  readonly log: Logger;
}): Promise<CertificateFiles> {
  const found = await readCertificateFiles(config);
  const problems = found.filter((each) => 'message' in each);
  if (problems.length > 0) throw new ConfigError(problems);
  const held = createHeldCertificates();
  let lists = (await readListFiles(config)).map((each) => {
    if ('message' in each) throw new ConfigError([each]);
    return each;
  });
  const hold = (certificates: readonly ServedCertificate[]) =>
    held.hold(certificates, { revocationLists: lists.flat() });
  hold(found.filter((each) => 'names' in each));
  let listProblems = '';
  /** What was wrong at the last look, by index. */
  let wrong: (string | undefined)[] = [];

  async function look(): Promise<void> {
    const now = await readCertificateFiles(config);
    const former = held.certificates();
    const formerWrong = wrong;
    const served = now.flatMap((each, index) => {
      const kept = former[index];
      if (kept === undefined) return [];
      return 'names' in each && !isSame(each, kept) ? [each] : [kept];
    });
    wrong = now.map((each) => ('message' in each ? `${each.path}: ${each.message}` : undefined));
    for (const [index, { origin, names, notAfter }] of served.entries()) {
      if (served[index] !== former[index]) {
        log.info({ certificate: origin, names, notAfter }, 'new certificate served from now on');
      } else if (wrong[index] !== undefined && wrong[index] !== formerWrong[index]) {
        log.error(
          { certificate: origin, problem: wrong[index], notAfter },
          'new certificate cannot be used, the former one stays',
        );
      }
    }
    const isListChanged = await lookAtLists();
    if (isListChanged || served.some((each, index) => each !== former[index])) hold(served);
  }

  /** Whether there are others than before. */
  async function lookAtLists(): Promise<boolean> {
    const before = lists;
    const now = await readListFiles(config);
    lists = now.map((each, index) => ('message' in each ? (before[index] ?? []) : each));
    const problems = now.flatMap((each) =>
      'message' in each ? `${each.path}: ${each.message}` : [],
    );
    if (problems.length > 0 && problems.join() !== listProblems) {
      log.error({ problems }, 'revocation list cannot be used, the former one stays');
    }
    listProblems = problems.join();
    const isChanged = lists.flat().join() !== before.flat().join();
    if (isChanged) log.info('new revocation list in force from now on');
    return isChanged;
  }

  const looking = createPeriodic({
    intervalMs: readAgainMs,
    work: look,
    onError: (error) => log.error({ err: error }, 'certificates could not be read'),
  });
  return {
    certificates: held.certificates,
    get revocationLists() {
      return held.revocationLists;
    },
    onChange: held.onChange,
    states: () =>
      held.certificates().map((certificate, index) => ({
        certificate,
        isCurrent: wrong[index] === undefined,
      })),
    refresh: () => looking.run(),
    [Symbol.dispose]: () => looking[Symbol.dispose](),
  };
}

function isSame(one: KeyPair, other: KeyPair): boolean {
  return one.certificate === other.certificate && one.key === other.key;
}

/** Reads the files of `Hub.certificates` in their order: each is a certificate, or what is wrong with it. */
export function readCertificateFiles({
  Hub,
  directory,
}: Pick<Config, 'Hub' | 'directory'>): Promise<(ServedCertificate | ConfigProblem)[]> {
  return Promise.all(
    Hub.certificates.map(async (files, index) => {
      const pathOf = (part: keyof KeyPair) => `Hub.certificates[${index}].${part}`;
      const [certificate, key] = await Promise.all(
        ([files.certificate, files.key] as const).map((file) => readFile(resolve(directory, file))),
      );
      if (certificate?.text === undefined) {
        return {
          path: pathOf('certificate'),
          message: `${files.certificate} ${certificate?.problem}`,
        };
      }
      const keyProblem = key?.problem ?? (await modeProblem(resolve(directory, files.key)));
      if (key?.text === undefined || keyProblem !== undefined) {
        return { path: pathOf('key'), message: `${files.key} ${keyProblem}` };
      }
      const read = readCertificate({
        origin: files.certificate,
        certificate: certificate.text,
        key: key.text,
      });
      if (!('problem' in read)) return read;
      return { path: pathOf(read.part), message: `${files[read.part]} ${read.problem}` };
    }),
  );
}

/** Reads the file of `Hub.client_authorities`, if any. */
export async function readClientAuthorities({
  Hub: { client_authorities: file },
  directory,
}: Pick<Config, 'Hub' | 'directory'>): Promise<string | ConfigProblem | undefined> {
  if (file === undefined) return undefined;
  const { text = '', problem } = await readFile(resolve(directory, file));
  const path = 'Hub.client_authorities';
  if (problem !== undefined) return { path, message: `${file} ${problem}` };
  const read = readAuthorities(text);
  return typeof read === 'string' ? read : { path, message: `${file} ${read.problem}` };
}

/** Reads the files of `Hub.client_revocation_lists` in their order: each is lists in PEM, or what is wrong with it. */
export function readListFiles({
  Hub,
  directory,
}: Pick<Config, 'Hub' | 'directory'>): Promise<(readonly string[] | ConfigProblem)[]> {
  return Promise.all(
    Hub.client_revocation_lists.map(async (file, index) => {
      const found = await readBoundedFile(resolve(directory, file), maxListBytes);
      const read = found.problem === undefined ? readRevocationLists(found.body) : found;
      if (!('problem' in read)) return read;
      return { path: `Hub.client_revocation_lists[${index}]`, message: `${file} ${read.problem}` };
    }),
  );
}

async function readFile(path: string): Promise<{ text?: string; problem?: string }> {
  const read = await readBoundedFile(path, maxFileBytes);
  return read.problem === undefined ? { text: read.body.toString('latin1') } : read;
}

/** A group may read it: that is how systems give keys to several programs (`ssl-cert` of Debian, `fsGroup` of pods). */
async function modeProblem(path: string): Promise<string | undefined> {
  const { mode } = await stat(path);
  if ((mode & 0o007) === 0) return undefined;
  return `can be read by other users of this machine; run: chmod o= ${path}`;
}
