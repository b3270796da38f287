import { hash, randomUUID, X509Certificate } from 'node:crypto';
import type { Logger } from 'pino';
import { createPeriodic, type Periodic } from '../concurrency/periodic.ts';
import { timeLimit } from '../concurrency/time-limit.ts';
import type { AcmeConfig } from '../config/config.ts';
import { readCertificate } from '../http/tls/read-certificate.ts';
import type { KeyvSpace } from '../store/keyv-space.ts';
import {
  type AcmeAccount,
  AcmeError,
  type AcmeServer,
  askRenewalInfo,
  openAcmeAccount,
} from './acme-client.ts';
import type { AcmeStore, StoredCertificate } from './acme-store.ts';
import { certificateIdOf } from './certificate-request.ts';
import type { ChallengeResponder } from './challenges.ts';
import { orderCertificate } from './order.ts';

export interface AcmeOptions {
  readonly acme: AcmeConfig;
  /** Of the certificate: hosts, and wildcards where dns-01 is used. */
  readonly names: () => readonly string[];
  readonly store: AcmeStore;
  readonly responder: ChallengeResponder;
  /** Whether there may be other instances. */
  readonly isShared: boolean;
  /** Which instance orders now. */
  readonly claims: Pick<KeyvSpace<string>, 'update'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with the certificate that is to be served from now on. */
  readonly onCertificate: (certificate: StoredCertificate) => void;
  /** Called by the instance that got it. */
  readonly onRenewed: (certificate: StoredCertificate) => Promise<void>;
  readonly log: Logger;
  readonly stopping: AbortSignal;
  readonly fetch?: typeof fetch;
}

/** How often an instance looks for what another one has got, and whether it is time. */
export const lookIntervalMs = 5_000;
/** An instance that dies while it orders has others go on after so long. */
const claimMs = 30_000;
/** Instances with other settings than one another, as while they are replaced, must not take turns. */
const minLifeMs = 3_600_000;
const orderLimitMs = 900_000;
/** Let's Encrypt bears five refused attempts an hour. */
const firstPauseMs = 120_000;
const maxPauseMs = 6 * 3_600_000;
/** RFC 9773 §4.3 has clients ask at least once a day, and names six hours where the server says nothing. */
const askIntervalMs = { min: 60_000, usual: 6 * 3_600_000, max: 86_400_000 };

/**
 * Keeps a certificate by ACME (RFC 8555), the same for all instances: one of them orders it, all serve it. It is renewed
 * when the authority says (RFC 9773), or else when two thirds of its life are over. What fails is tried again after two
 * minutes, then after twice as long each time, and never before the authority allows it; the former certificate is served
 * meanwhile.
 */
export function startAcmeCertificates(options: AcmeOptions): Periodic {
  const { acme, names, store, responder, claims, now, log, stopping } = options;
  const self = randomUUID();
  const digest = () => {
    const settings = [acme, acme.external_account?.key.reveal(), names()];
    return hash('sha256', JSON.stringify(settings), 'base64url');
  };
  let served: string | undefined;

  const serverUntil = (signal: AbortSignal): AcmeServer => ({
    directory: acme.directory,
    fetch: options.fetch ?? fetch,
    signal,
  });

  async function look(): Promise<void> {
    const stored = await store.certificate();
    if (stored !== undefined && stored.certificate !== served) {
      served = stored.certificate;
      options.onCertificate(stored);
    }
    if (isDue(stored)) await alone(renewIfDue);
  }

  function isOrderDue(stored: StoredCertificate | undefined): boolean {
    if (stored === undefined || stored.renewAt <= now()) return true;
    const isOther =
      stored.directory !== acme.directory || names().some((name) => !stored.names.includes(name));
    return isOther && (!options.isShared || stored.madeAt + minLifeMs <= now());
  }

  function isDue(stored: StoredCertificate | undefined): boolean {
    return isOrderDue(stored) || (stored?.askAt ?? Number.POSITIVE_INFINITY) <= now();
  }

  /** Does work unless another instance does it now. */
  async function alone(work: () => Promise<void>): Promise<void> {
    const claim = () =>
      claims.update('order', (holder) =>
        holder === undefined || holder === self ? { value: self, lifetimeMs: claimMs } : undefined,
      );
    if ((await claim()) !== self) return;
    await using _ = createPeriodic({
      intervalMs: claimMs / 3,
      work: async () => void (await claim()),
      onError: (error) =>
        log.debug({ err: error }, 'could not say that a certificate is being ordered'),
    });
    try {
      await work();
    } finally {
      await claims.update('order', (holder) => (holder === self ? 'delete' : undefined));
    }
  }

  /** Another instance may have been faster, so all is read again. */
  async function renewIfDue(): Promise<void> {
    let stored = await store.certificate();
    if (stored?.askAt !== undefined && stored.askAt <= now()) {
      stored = await askWhen(stored, stored.askAt);
      await store.setCertificate(stored);
    }
    if (!isOrderDue(stored)) return;
    const failure = await store.failure();
    const settings = digest();
    const isSame = failure?.settings === settings;
    if (isSame && failure.nextAt > now()) return;
    try {
      await renew(stored);
      await store.setFailure(undefined);
    } catch (error) {
      if (stopping.aborted) return;
      const count = (isSame ? failure.count : 0) + 1;
      const pauseMs = Math.min(firstPauseMs * 2 ** (count - 1), maxPauseMs);
      const askedMs = error instanceof AcmeError ? (error.retryAfterMs ?? 0) : 0;
      const nextAt = now() + Math.max(pauseMs * (1 + Math.random() / 4), askedMs);
      const reason = error instanceof Error ? error.message : String(error);
      await store.setFailure({ settings, count, at: now(), nextAt, reason });
      log.error(
        { err: error, names: names(), attempts: count, next: new Date(nextAt) },
        stored === undefined
          ? 'no certificate obtained by ACME'
          : 'certificate not renewed by ACME, former one is served',
      );
    }
  }

  async function renew(former: StoredCertificate | undefined): Promise<void> {
    const signal = timeLimit(orderLimitMs, stopping);
    const ordered = names();
    const account = await openAccount(serverUntil(signal));
    const replaces = former?.directory === acme.directory ? former.id : undefined;
    const made = await orderCertificate(account, {
      names: ordered,
      responder,
      replaces,
      signal,
    });
    // What is served is given to each handshake, which must not meet what cannot be read.
    const read = readCertificate({ ...made, origin: 'Hub.acme' });
    if ('problem' in read)
      throw new AcmeError(
        `What the authority made cannot be served: its ${read.part} ${read.problem}`,
      );
    const { validFromDate, validToDate } = new X509Certificate(made.certificate);
    const lifeMs = validToDate.getTime() - validFromDate.getTime();
    const hasInfo = account.directory.renewalInfo !== undefined;
    const stored: StoredCertificate = {
      ...made,
      directory: acme.directory,
      names: [...ordered],
      madeAt: now(),
      notAfter: validToDate.getTime(),
      renewAt: validFromDate.getTime() + lifeMs * (2 / 3 + Math.random() / 30),
      id: await certificateIdOf(made.certificate),
      askAt: hasInfo ? now() : undefined,
    };
    await store.setCertificate(stored);
    served = stored.certificate;
    options.onCertificate(stored);
    await options.onRenewed(stored).catch((error: unknown) => {
      log.error({ err: error, names: ordered }, 'renewal of certificate not recorded');
    });
    log.info({ names: ordered, until: validToDate }, 'certificate renewed by ACME');
  }

  /** The account may have been closed at the authority: then there is another one. */
  async function openAccount(server: AcmeServer): Promise<AcmeAccount> {
    const { email, external_account: externalAccount } = acme;
    const account = [acme.directory, email, externalAccount?.id].join(' ');
    const open = async (key: Awaited<ReturnType<AcmeStore['accountKey']>>) =>
      await openAcmeAccount(server, { key, email, externalAccount });
    try {
      return await open(await store.accountKey(account));
    } catch (error) {
      const isGone =
        error instanceof AcmeError &&
        /^(?:unauthorized|accountDoesNotExist)$/.test(error.type ?? '');
      if (!isGone) throw error;
      log.warn({ err: error }, 'ACME account refused by authority, making another');
      return await open(await store.replaceAccountKey(account));
    }
  }

  async function askWhen(stored: StoredCertificate, askAt: number): Promise<StoredCertificate> {
    const { id, window: former } = stored;
    if (id === undefined) return { ...stored, askAt: undefined };
    try {
      const info = await askRenewalInfo(serverUntil(timeLimit(orderLimitMs, stopping)), id);
      if (info === undefined) return { ...stored, askAt: undefined };
      const { window, retryAfterMs = askIntervalMs.usual, explanationUrl } = info;
      const { min, max } = askIntervalMs;
      const next = { askAt: now() + Math.min(Math.max(retryAfterMs, min), max), window };
      if (former?.start === window.start && former.end === window.end)
        return { ...stored, ...next };
      const renewAt = window.start + Math.random() * (window.end - window.start);
      log.info(
        { renewAt: new Date(renewAt), explanationUrl },
        'renewal time of certificate set by authority',
      );
      return { ...stored, ...next, renewAt };
    } catch (error) {
      if (stopping.aborted) return { ...stored, askAt };
      log.warn({ err: error }, 'renewal time of certificate unknown');
      return { ...stored, askAt: now() + askIntervalMs.usual };
    }
  }

  const looking = createPeriodic({
    intervalMs: lookIntervalMs,
    work: look,
    onError: (error) => log.warn({ err: error }, 'could not look for the certificate'),
  });
  void looking.run();
  return looking;
}
