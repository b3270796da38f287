import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { text as readAll } from 'node:stream/consumers';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { createEventLoopYield } from '../../platform/concurrency/turns.ts';
import { TextError } from '../../platform/errors.ts';
import { makeDirectory } from '../../platform/files/make-directory.ts';
import { inSeconds } from '../../platform/texts/seconds.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import { findSystemUser, runsAsRoot, type SystemUser } from '../processes/system-user.ts';
import { type JobFigures, readFigures } from './job-figures.ts';
import type { Job } from './job-states.ts';

/** The programs of Slurm, as the hub and its users call them. */
export interface SlurmCommands {
  /** Submits a batch script with the arguments of sbatch(1). Returns the id of the job. */
  submit(
    script: string,
    args: readonly string[],
    options: { readonly account: string | undefined; readonly signal: AbortSignal },
  ): Promise<string>;
  /** Those of these jobs that the controller knows; it forgets them some minutes after their end. */
  listJobs(ids: readonly string[]): Promise<readonly Job[]>;
  /** Jobs that wait or run, but for arrays, with the accounts that own them; comments are what those wrote. */
  listCommented(): Promise<readonly CommentedJob[]>;
  /** Ids of all waiting jobs, those that come first before the others, by partition. */
  listQueues(signal?: AbortSignal): Promise<ReadonlyMap<string, readonly string[]>>;
  /** With which code the program of a job ended; undefined where Slurm does not know. */
  exitCodeOf(id: string): Promise<number | undefined>;
  /** What a program of Slurm says of its version; rejects where it cannot be run. */
  versionOf(
    name: 'sbatch' | 'squeue' | 'scancel' | 'scontrol',
    signal: AbortSignal,
  ): Promise<string>;
  /** `UP`, `DOWN`, `DRAIN` or `INACTIVE`. Rejects with SlurmRefusal for a partition that is not there. */
  partitionState(partition: string, signal: AbortSignal): Promise<string>;
  /**
   * What these jobs use, under the account of the hub: those that Slurm measures and shows to it, and its reason where
   * it leaves some out that run. Rejects as any command does.
   */
  measureJobs(ids: readonly string[]): Promise<Measurement>;
  /** Host name or address at which a node is reached. */
  addressOf(node: string): Promise<string>;
  /** Ends a job, with SIGKILL at once if told; one that has ended already stays as it is. */
  cancel(
    id: string,
    options: { readonly account: string | undefined; readonly kill: boolean },
  ): Promise<void>;
  /** Suspends a running job or lets it go on (scontrol(1)), which Slurm lets its operators do; idempotent. */
  setSuspended(id: string, isSuspended: boolean): Promise<void>;
  /** Makes a folder and those above it under an account, where it is missing. */
  makeFolder(folder: string, account: string | undefined): Promise<void>;
  /** The last lines of a file, read under the account that owns the job. */
  readEnd(file: string, account: string | undefined): Promise<readonly string[]>;
}

export interface CommentedJob {
  readonly id: string;
  /** Account of the machine. */
  readonly account: string;
  readonly comment: string;
}

export interface Measurement {
  readonly figures: readonly JobFigures[];
  readonly refusal: Phrase | undefined;
}

/** The controller of Slurm gives no answer, which says nothing of the jobs. */
export class SlurmUnavailable extends TextError {
  override readonly name = 'SlurmUnavailable';
}

/** What Slurm refused, and why. */
export class SlurmRefusal extends TextError {
  override readonly name = 'SlurmRefusal';
}

const timeoutMs = 30_000;
/** Each is a process of its own, and a burst of them would keep processors from the hub. */
const parallelCommands = 8;
const maxEndBytes = 16_384;
const separator = '\u001f';
/** Fields of squeue(1), which never hold the separator. */
const jobFormat = ['%i', '%T', '%r', '%B', '%P', '%l', '%S'].join(separator);
const largestQuery = 500;

export function createSlurmCommands(options: {
  /** Folder of the programs; undefined for those on the path. */
  readonly directory: string | undefined;
  /** Words before a command that is to run under another account; `{username}` is that account. */
  readonly sudo: readonly string[] | undefined;
  readonly environment: Readonly<Record<string, string>>;
}): SlurmCommands {
  const { directory, sudo, environment } = options;
  const program = (name: string) => (directory === undefined ? name : `${directory}/${name}`);

  const inTurn = createLimiter(parallelCommands);
  const yieldToEventLoop = createEventLoopYield();

  interface RunOptions {
    readonly account?: string | undefined;
    readonly input?: string;
    readonly signal?: AbortSignal;
    /** What squeue(1) prints of each job, where other accounts must not see it. */
    readonly squeueFormat?: string;
  }
  const runInTurn = (words: readonly string[], how: RunOptions) =>
    inTurn(() => runNow(words, how), how.signal);
  const run = async (words: readonly string[], how: RunOptions = {}) =>
    (await runInTurn(words, how)).output;

  async function runNow(
    words: readonly string[],
    how: RunOptions,
  ): Promise<{ readonly output: string; readonly errors: string }> {
    const { account, input = '', signal, squeueFormat } = how;
    const user = account === undefined ? undefined : await requireAccount(account);
    const isDirect = user === undefined || (sudo === undefined && runsAsRoot());
    if (user !== undefined && !isDirect && sudo === undefined) {
      throw new TextError(
        text`Jobs cannot be submitted under the accounts of users: the hub does not run as root, and SlurmSpawner.sudo is not set.`,
      );
    }
    const [command = '', ...args] = isDirect
      ? words
      : [...(sudo ?? []).map((word) => word.replaceAll('{username}', user.name)), ...words];
    // To start a program stops this thread for some milliseconds.
    await yieldToEventLoop();
    signal?.throwIfAborted();
    const child = spawn(command, args, {
      cwd: '/',
      env:
        squeueFormat === undefined ? environment : { ...environment, SQUEUE_FORMAT: squeueFormat },
      stdio: ['pipe', 'pipe', 'pipe'],
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]),
      killSignal: 'SIGKILL',
      ...(user !== undefined && isDirect && { uid: user.userId, gid: user.groupId }),
    });
    child.stdin.on('error', () => {
      // A program that reads nothing says why on its own.
    });
    child.stdin.end(input);
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    const [code, output, errors] = await Promise.all([
      ended,
      readAll(child.stdout),
      readAll(child.stderr),
    ]).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw explainRun(error, command);
    });
    if (code === 0) return { output, errors };
    const said = describeErrors(errors);
    throw isAway(errors) ? new SlurmUnavailable(said) : new SlurmRefusal(said);
  }

  async function measuresNone(): Promise<boolean> {
    const configuration = await run([program('scontrol'), 'show', 'config']);
    // Some versions write `(null)`.
    return /^JobAcctGatherType\s*=\s*(jobacct_gather\/none|\(null\))\s*$/m.test(configuration);
  }

  async function listJobs(ids: readonly string[]): Promise<Job[]> {
    const jobs: Job[] = [];
    for (let from = 0; from < ids.length; from += largestQuery) {
      const list = ids.slice(from, from + largestQuery).join(',');
      const words = [program('squeue'), '--noheader', '--states=all', `--format=${jobFormat}`];
      jobs.push(...readJobs(await unlessUnknown(run([...words, `--jobs=${list}`]))));
    }
    return jobs;
  }

  return {
    async submit(script, args, { account, signal }) {
      const words = [program('sbatch'), '--parsable', ...args];
      const output = await run(words, { account, input: script, signal });
      const [id = ''] = output.trim().split(';');
      if (!/^\d+$/.test(id)) throw new SlurmRefusal(`sbatch said: ${output.slice(0, 200)}`);
      return id;
    },

    listJobs,

    async listCommented() {
      // A comment may hold lines that look like those of other jobs, but not what nobody knew when it was written.
      const mark = randomUUID();
      const squeueFormat = mark + ['%i', '%u', '%k'].join(separator);
      const output = await run([program('squeue'), '--noheader'], { squeueFormat });
      return output.split(mark).flatMap((record) => {
        const [id = '', account = '', ...comment] = record.trimEnd().split(separator);
        // The hub submits no arrays, whose ids are lists.
        return /^\d+$/.test(id) ? [{ id, account, comment: comment.join(separator) }] : [];
      });
    },

    async listQueues(signal) {
      const format = ['%i', '%P'].join(separator);
      const words = [program('squeue'), '--noheader', '--states=PENDING', `--format=${format}`];
      const jobs = linesOf(await run([...words, '--sort=-p,i'], { ...(signal && { signal }) })).map(
        (line) => {
          const [id = '', partition = ''] = line.split(separator);
          return { id, partition };
        },
      );
      return new Map(
        [...Map.groupBy(jobs, ({ partition }) => partition)].map(([partition, those]) => [
          partition,
          those.map(({ id }) => id),
        ]),
      );
    },

    async exitCodeOf(id) {
      const output = await unlessUnknown(
        run([program('scontrol'), 'show', 'job', id, '--oneliner']),
      );
      const code = /\bExitCode=(\d+):/.exec(output)?.[1];
      return code === undefined ? undefined : Number(code);
    },

    async versionOf(name, signal) {
      return (await run([program(name), '--version'], { signal })).trim();
    },

    async partitionState(partition, signal) {
      const words = [program('scontrol'), 'show', 'partition', partition, '--oneliner'];
      const output = await run(words, { signal }).catch((error: unknown) => {
        // It says so on its standard output.
        throw error instanceof SlurmRefusal ? new SlurmRefusal('is not there') : error;
      });
      return /\bState=(\w+)/.exec(output)?.[1] ?? 'unknown';
    },

    async measureJobs(ids) {
      const figures: JobFigures[] = [];
      let refusal: Phrase | undefined;
      for (let from = 0; from < ids.length; from += largestQuery) {
        const steps = ids.slice(from, from + largestQuery).map((id) => `${id}.batch`);
        const words = [program('sstat'), '--noheader', '--parsable2', '--noconvert'];
        const { output, errors } = await runInTurn(
          [...words, '--format=JobID,AveCPU,AveRSS', `--jobs=${steps.join(',')}`],
          {},
        );
        const read = readFigures(output);
        figures.push(...read);
        refusal ??= describeMissing(errors);
        // Steps are listed without their memory where nothing is measured, and for a moment after they began.
        if (read.length === 0 && output.trim() !== '' && (await measuresNone())) {
          refusal ??= text`Slurm measures none: set JobAcctGatherType=jobacct_gather/cgroup in slurm.conf`;
        }
      }
      return { figures, refusal };
    },

    async addressOf(node) {
      const output = await run([program('scontrol'), 'show', 'node', node, '--oneliner']);
      return /\bNodeAddr=(\S+)/.exec(output)?.[1] ?? node;
    },

    async cancel(id, { account, kill }) {
      const how = kill ? ['--signal=KILL', '--full'] : [];
      await unlessUnknown(run([program('scancel'), ...how, id], { account }));
    },

    async setSuspended(id, isSuspended) {
      try {
        await run([program('scontrol'), isSuspended ? 'suspend' : 'resume', id]);
      } catch (error) {
        const [job] = await listJobs([id]);
        if (job === undefined || (job.state === 'SUSPENDED') !== isSuspended) throw error;
      }
    },

    async makeFolder(folder, account) {
      if (account === undefined) return makeDirectory(folder, 0o700);
      await run(['mkdir', '--parents', '--mode=700', '--', folder], { account });
    },

    async readEnd(file, account) {
      const output = await run(['tail', `--bytes=${maxEndBytes}`, '--', file], { account });
      return linesOf(output);
    },
  };
}

/** An id that Slurm does not know is an error where it is the only one, and left out of several. */
async function unlessUnknown(running: Promise<string>): Promise<string> {
  try {
    return await running;
  } catch (error) {
    if (error instanceof SlurmRefusal && /Invalid job id/i.test(error.message)) return '';
    throw error;
  }
}

async function requireAccount(name: string): Promise<SystemUser> {
  const user = await findSystemUser(name);
  if (user === undefined)
    throw new TextError(text`The machine of the hub has no account "${name}".`);
  return user;
}

function readJobs(output: string): Job[] {
  return linesOf(output).map((line) => {
    const [
      id = '',
      state = '',
      reason = '',
      node = '',
      partition = '',
      timeLimit = '',
      start = '',
    ] = line.split(separator);
    const known = (value: string) => (/^(\(null\)|n\/a|N\/A|)$/.test(value) ? undefined : value);
    return { id, state, reason, node: known(node), partition, timeLimit, startTime: known(start) };
  });
}

function linesOf(output: string): string[] {
  return output.split('\n').filter((line) => line.trim() !== '');
}

/** What a program of Slurm said, in one line and without its own name. */
function describeErrors(errors: string): Phrase {
  const line = linesOf(errors).at(-1);
  if (line === undefined) return text`it gave no reason`;
  return line.replace(/^\w+: (?:error|fatal): /, '').slice(0, 300);
}

/** Why sstat leaves jobs out, which is no failure to it; jobs that begin or have ended need no reason. */
function describeMissing(errors: string): Phrase | undefined {
  const lines = linesOf(errors).filter(
    (line) => !/couldn't get steps for job|not found running/.test(line),
  );
  if (lines.length === 0) return undefined;
  return /Invalid user id/i.test(errors)
    ? text`Slurm shows those of a job to root, the SlurmUser and the account of the job alone`
    : describeErrors(errors);
}

/** What the programs say when they do not get through to the controller. */
function isAway(errors: string): boolean {
  return /Unable to contact slurm controller|Socket timed out|Connection refused|Zero Bytes were transmitted|Unspecified error|Communication connection failure|slurm_persist_conn|temporarily unable to accept|Protocol authentication error|auth_munge|Munge/i.test(
    errors,
  );
}

function explainRun(error: unknown, command: string): Error {
  const { code, name } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') {
    return new TextError(
      text`The program ${command} is not there: install Slurm's clients beside the hub.`,
    );
  }
  if (name === 'AbortError' || name === 'TimeoutError') {
    return new SlurmUnavailable(
      text`${command} gave no answer within ${inSeconds(timeoutMs / 1000)}`,
    );
  }
  return error instanceof Error ? error : new Error(String(error));
}
