import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { createBatchLoader } from '../../platform/concurrency/answer-cache.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { messageOf, TextError } from '../../platform/errors.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import { isSamePhrase, type Phrase, text } from '../../platform/texts/text.ts';
import type {
  AcceptAddress,
  ResumeRequest,
  SpawnerState,
  SpawnProgress,
  SpawnRequest,
  StartCallbacks,
} from '../../plugin/host/spawn-request.ts';
import type {
  PollResult,
  ServerExit,
  SpawnedServer,
  Spawner,
  SpawnerHost,
} from '../../plugin/host/spawner.ts';
import { notStartedBecause } from '../spawner-texts.ts';
import { jobArguments } from './job-arguments.ts';
import { createJobOutputs } from './job-outputs.ts';
import { writeJobScript } from './job-script.ts';
import { describeEnd, describeWait, type Job, phaseOf } from './job-states.ts';
import { createLeftOverJobs } from './left-over-jobs.ts';
import { type SlurmCommands, SlurmRefusal, SlurmUnavailable } from './slurm-commands.ts';
import { chooseFor, type SlurmOptions, type SlurmProfile } from './slurm-options.ts';

const stateSchema = z.object({
  jobId: z.string().regex(/^\d+$/),
  /** Missing while the job has told no address. */
  url: z.string().optional(),
  account: z.string().optional(),
  outputFile: z.string(),
});

type JobState = z.output<typeof stateSchema>;

const stopLookMs = 500;
const retryMs = 1_000;
/** What Slurm has beyond the grace to end a job that is left over. */
const endTimeoutMs = 30_000;
const sweepIntervalMs = 60_000;
const addressAgeMs = 60_000;

/** Runs each server as a batch job of Slurm. */
export function createSlurmSpawner(deps: {
  readonly options: SlurmOptions;
  readonly commands: SlurmCommands;
  /** Tells the jobs of this hub from those of others with the same job name. */
  readonly hubTag: string;
  readonly activeServers: SpawnerHost['activeServers'];
  readonly log: PluginLog;
}): Spawner<SlurmProfile> {
  const { options, commands, log } = deps;
  const pollMs = options.poll_interval * 1000;
  const closing = new AbortController();
  const outputs = createJobOutputs({ commands, intervalMs: pollMs, log });
  /** Jobs of servers that have an address, and who waits for their end. */
  const live = new Map<string, (exit: ServerExit) => void>();
  const watching = createPeriodic({
    intervalMs: pollMs,
    async work() {
      // Asked for in one turn, they are one question to Slurm.
      await Promise.all([...live.keys()].map(noticeEnd));
    },
    onError: (error) => log.debug({ err: error }, 'could not ask Slurm for the jobs'),
  });

  /** Jobs that this process started or found again and that have not ended. */
  const known = new Set<string>();
  const leftOver = createLeftOverJobs({
    ...deps,
    isKnown: (jobId) => known.has(jobId),
    end: (job, { graceMs, signal }) =>
      cancelAndWait(job, { graceMs, signal: timeLimit(graceMs + endTimeoutMs, signal) }),
  });
  const sweeping = createPeriodic({
    intervalMs: sweepIntervalMs,
    work: () => leftOver.sweep(),
    onError: (error) => log.debug({ err: error }, 'could not look for orphaned jobs'),
  });

  const addresses = new LRUCache<string, string>({
    max: 1_000,
    ttl: addressAgeMs,
    fetchMethod: (node) => commands.addressOf(node),
  });
  const lookUp = createBatchLoader<string, Job>(async (ids) => {
    const jobs = await commands.listJobs(ids);
    return new Map(jobs.map((job) => [job.id, job]));
  });

  const jobNameOf = (objectName: string) => `${options.job_name_prefix}-${objectName}`;

  /**
   * Makes the URL of a server of its report: the host is the one on which Slurm runs the job. The job tells it
   * once, so it is kept before the job is answered.
   */
  function acceptFor(
    submitted: Promise<JobState>,
    keepState: StartCallbacks['keepState'],
  ): AcceptAddress {
    return async ({ port }) => {
      const state = await submitted;
      const job = await lookUp(state.jobId);
      if (job?.node === undefined || phaseOf(job) !== 'running') {
        throw new TextError(text`Slurm does not run this job.`);
      }
      const address = (await addresses.fetch(job.node)) ?? job.node;
      const host = address.includes(':') ? `[${address}]` : address;
      const url = `http://${host}:${port}`;
      await keepState({ ...state, url });
      return url;
    };
  }

  /** Watches a job until it ends or `signal` aborts; then it throws. */
  async function watch(
    jobId: string,
    { onProgress, signal }: Pick<StartCallbacks, 'onProgress' | 'signal'>,
  ): Promise<never> {
    let last: Phrase | undefined;
    const say = (message: Phrase, event: Omit<SpawnProgress, 'message'>) => {
      if (isSamePhrase(message, last)) return;
      last = message;
      onProgress({ ...event, message });
    };
    for (;;) {
      signal.throwIfAborted();
      closing.signal.throwIfAborted();
      try {
        const job = await lookUp(jobId);
        if (job === undefined || phaseOf(job) === 'ended') {
          await outputs.finish(jobId);
          throw new SlurmRefusal(notStartedBecause(describeEnd(job)));
        }
        if (phaseOf(job) === 'waiting') {
          const queues = await loadQueues('queues');
          const message = describeWait(job, queues?.get(job.partition) ?? []);
          say(message, { progress: 20, phase: 'pending', reason: job.reason });
        } else {
          const message = text`The job ${jobId} runs on ${job.node ?? text`a node`}.`;
          say(message, { progress: 40, phase: 'starting' });
        }
      } catch (error) {
        if (!(error instanceof SlurmUnavailable)) throw error;
        const message = text`Slurm gives no answer: ${messageOf(error)}.`;
        say(message, { progress: 20, phase: 'pending', reason: error.message });
      }
      await sleep(pollMs, undefined, {
        signal: AbortSignal.any([signal, closing.signal]),
      }).catch(() => undefined);
    }
  }

  const loadQueues = createBatchLoader<'queues', ReadonlyMap<string, readonly string[]>>(
    async () => new Map([['queues', await commands.listQueues()]]),
  );

  /** The job tells its address or ends, whichever comes first. */
  async function untilAddress(
    state: JobState,
    request: StartCallbacks,
    reported: Promise<string>,
  ): Promise<SpawnedServer> {
    const { jobId } = state;
    known.add(jobId);
    const settled = new AbortController();
    const signal = AbortSignal.any([request.signal, settled.signal]);
    try {
      const url = await Promise.race([reported, watch(jobId, { ...request, signal })]);
      return serverOf({ ...state, url });
    } catch (error) {
      if (closing.signal.aborted) throw error;
      await cancelAndWait(state, { graceMs: 0, signal: AbortSignal.timeout(30_000) }).catch(
        (failure: unknown) => log.error({ err: failure, jobId }, 'job could not be cancelled'),
      );
      known.delete(jobId);
      await outputs.finish(jobId);
      request.signal.throwIfAborted();
      throw error;
    } finally {
      settled.abort();
    }
  }

  function serverOf(state: JobState & { readonly url: string }): SpawnedServer {
    const { promise: exited, resolve } = Promise.withResolvers<ServerExit>();
    known.add(state.jobId);
    live.set(state.jobId, resolve);
    return { url: state.url, state, exited };
  }

  /** Says how a job has ended; undefined while it has not. Throws SlurmUnavailable. */
  async function noticeEnd(jobId: string): Promise<ServerExit | undefined> {
    const job = await lookUp(jobId);
    if (job !== undefined && phaseOf(job) !== 'ended') return undefined;
    known.delete(jobId);
    await outputs.finish(jobId);
    const exit = {
      code: job === undefined ? null : ((await commands.exitCodeOf(jobId)) ?? null),
      signal: null,
      reason: describeEnd(job),
    };
    live.get(jobId)?.(exit);
    live.delete(jobId);
    return exit;
  }

  async function cancelAndWait(
    { jobId, account }: Pick<JobState, 'jobId' | 'account'>,
    { graceMs, signal }: { readonly graceMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const begunAt = performance.now();
    let failure: unknown;
    let isReported = false;
    let isKilled = false;
    for (;;) {
      try {
        if (!isReported) await commands.cancel(jobId, { account, kill: false });
        isReported = true;
        const job = await lookUp(jobId);
        if (job === undefined || phaseOf(job) === 'ended') return;
        if (!isKilled && performance.now() - begunAt > graceMs) {
          await commands.cancel(jobId, { account, kill: true });
          isKilled = true;
        }
      } catch (error) {
        if (!(error instanceof SlurmUnavailable)) throw error;
        failure = error;
      }
      if (signal.aborted) {
        const why = failure === undefined ? text`Slurm still lists it` : messageOf(failure);
        throw new TextError(text`The job ${jobId} could not be ended: ${why}.`);
      }
      await sleep(failure === undefined ? stopLookMs : retryMs, undefined, { signal }).catch(
        () => undefined,
      );
    }
  }

  return {
    needsReachableHub: true,
    reach: 'anywhere',

    async start(request) {
      request.signal.throwIfAborted();
      refuseWhatSlurmLacks(request);
      const chosen = chooseFor(options, request);
      const account = request.systemUser;
      const outputFile = outputFileOf(options, request);
      const submitted = Promise.withResolvers<JobState>();
      submitted.promise.catch(() => undefined);
      const reported = request.awaitAddress(acceptFor(submitted.promise, request.keepState));
      reported.catch(() => undefined);
      const script = writeJobScript({
        command: request.command,
        environment: request.environment,
        environmentForUrl: request.environmentForUrl,
        workingDirectory: request.workingDirectory,
        modules: chosen.modules,
        prologue: chosen.prologue,
        portRange: options.port_range,
        addressVariable: 'HUB_ADDRESS_URL',
        tokenVariable: 'HUB_API_TOKEN',
      });
      // On a file system that only the nodes see, it is for the operator to make.
      await commands.makeFolder(dirname(outputFile), account).catch((error: unknown) => {
        log.debug({ err: error }, 'could not make the folder for the output of a job');
      });
      const args = jobArguments(request, chosen, {
        name: jobNameOf(request.objectName),
        comment: leftOver.commentOf(request.serverId),
        outputFile,
      });
      let jobId: string;
      try {
        const { serverId, signal } = request;
        await leftOver.endAllOf(serverId, { graceMs: 0, signal, only: { account } });
        jobId = await commands.submit(script, args, { account, signal: request.signal });
        known.add(jobId);
      } catch (error) {
        submitted.reject(error);
        if (error instanceof SlurmUnavailable) {
          throw new TextError(text`Slurm gives no answer: ${messageOf(error)}.`, { cause: error });
        }
        throw error instanceof SlurmRefusal
          ? new TextError(text`Slurm refuses the job: ${messageOf(error)}.`, { cause: error })
          : error;
      }
      const state: JobState = {
        jobId,
        outputFile: outputFile.replaceAll('%j', jobId),
        ...(account !== undefined && { account }),
      };
      await outputs.follow(jobId, {
        account,
        file: state.outputFile,
        onOutput: request.onOutput,
        secrets: secretsIn(request.environment),
      });
      await request.keepState(state);
      submitted.resolve(state);
      return await untilAddress(state, request, reported);
    },

    async resume(kept, request: ResumeRequest) {
      const state = readState(kept);
      if (state === undefined) return undefined;
      const { jobId, account, outputFile: file, url } = state;
      const reported =
        url === undefined
          ? request.awaitAddress(acceptFor(Promise.resolve(state), request.keepState))
          : Promise.resolve(url);
      reported.catch(() => undefined);
      const job = await lookUp(jobId).catch(() => 'unknown' as const);
      if (job === undefined || (job !== 'unknown' && phaseOf(job) === 'ended')) return undefined;
      await outputs.follow(jobId, { account, file, onOutput: request.onOutput });
      return await untilAddress(state, request, reported);
    },

    async stop(stored, { graceMs, signal }) {
      const state = readState(stored);
      if (state === undefined) return;
      await cancelAndWait(state, { graceMs, signal });
      await noticeEnd(state.jobId).catch(() => undefined);
    },

    async poll(stored): Promise<PollResult> {
      const state = readState(stored);
      if (state === undefined) return { running: false };
      try {
        const exit = await noticeEnd(state.jobId);
        return exit === undefined ? { running: true } : { running: false, exit };
      } catch (error) {
        return { running: 'unknown', reason: messageOf(error) };
      }
    },

    async restore(stored, { onOutput }) {
      const state = readState(stored);
      if (state?.url === undefined) return undefined;
      const job = await lookUp(state.jobId);
      if (job === undefined || phaseOf(job) === 'ended') return undefined;
      const { jobId, account, outputFile: file, url } = state;
      await outputs.follow(jobId, { account, file, onOutput });
      return serverOf({ ...state, url });
    },

    discard: (serverId, { graceMs }) => leftOver.endAllOf(serverId, { graceMs }),

    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The hub is stopping.'));
      await watching[Symbol.asyncDispose]();
      await sweeping[Symbol.asyncDispose]();
      await outputs[Symbol.asyncDispose]();
    },
  };
}

/** Reads a stored state; undefined when it is not one of this spawner. */
export function readState(state: SpawnerState): JobState | undefined {
  return stateSchema.safeParse(state).data;
}

function refuseWhatSlurmLacks({ limits, socket, volumes }: SpawnRequest): void {
  if (limits.processes !== undefined) {
    throw new TextError(text`Slurm holds no limit of processes: leave it out of the profile.`);
  }
  if (volumes.length > 0) {
    throw new TextError(text`Slurm jobs see the file systems of their node: leave volumes out.`);
  }
  if (socket) throw new TextError(text`Jobs of Slurm listen on a port: leave the socket out.`);
}

/** `{username}` and `{server}` filled in; `%j` is for Slurm to fill in. */
function outputFileOf(
  { output }: SlurmOptions,
  { objectName, workingDirectory }: SpawnRequest,
): string {
  const file = output.replaceAll('{server}', objectName);
  const absolute = file.startsWith('/') ? file : `${workingDirectory}/${file}`;
  // Slurm has patterns of its own; only the number of the job is meant (sbatch(1), filename pattern).
  return absolute.replaceAll(/%(?!j)/g, '%%');
}

function secretsIn(environment: Readonly<Record<string, string>>): string[] {
  return Object.entries(environment)
    .filter(([name]) => name.endsWith('_API_TOKEN'))
    .map(([, value]) => value);
}
