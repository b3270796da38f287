import { createPeriodic, type Periodic } from '../../platform/concurrency/periodic.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { StartCallbacks } from '../../plugin/host/spawn-request.ts';
import { findSystemUser } from '../processes/system-user.ts';
import { createJobOutput, type JobOutput } from './job-output.ts';
import type { SlurmCommands } from './slurm-commands.ts';

/** A job whose output is told to the hub. */
export interface FollowedJob {
  /** Account that owns the job; that of the hub when undefined. */
  readonly account: string | undefined;
  readonly file: string;
  readonly onOutput: StartCallbacks['onOutput'];
  /** What shows as `[secret]`. */
  readonly secrets?: readonly string[];
}

/** Reads along what jobs write. */
export interface JobOutputs extends AsyncDisposable {
  follow(jobId: string, job: FollowedJob): Promise<void>;
  /** Tells the last lines of a job that has ended, and forgets it. */
  finish(jobId: string): Promise<void>;
}

const tailLines = 50;

export function createJobOutputs(deps: {
  readonly commands: Pick<SlurmCommands, 'readEnd'>;
  readonly intervalMs: number;
  readonly log: PluginLog;
}): JobOutputs {
  const { commands, intervalMs, log } = deps;
  const followed = new Map<string, FollowedJob & { readonly output: JobOutput }>();
  let following: Periodic | undefined;

  async function tellNew(job: FollowedJob & { readonly output: JobOutput }): Promise<void> {
    for (const line of await job.output.readNew()) job.onOutput(line, 'stdout');
  }

  return {
    async follow(jobId, job) {
      if (followed.has(jobId)) return;
      const user = job.account === undefined ? undefined : await findSystemUser(job.account);
      const output = createJobOutput({
        file: job.file,
        userId: user?.userId,
        secrets: job.secrets ?? [],
      });
      followed.set(jobId, { ...job, output });
      following ??= createPeriodic({
        intervalMs,
        work: async () => {
          for (const each of followed.values()) await tellNew(each);
        },
        onError: (error) => log.warn({ err: error }, 'could not read the output of jobs'),
      });
    },

    async finish(jobId) {
      const job = followed.get(jobId);
      if (job === undefined) return;
      followed.delete(jobId);
      await tellNew(job);
      if (!job.output.isSeen) {
        const lines = await commands.readEnd(job.file, job.account).catch(() => []);
        for (const line of lines.slice(-tailLines)) job.onOutput(line, 'stdout');
      }
      await job.output[Symbol.asyncDispose]();
    },

    async [Symbol.asyncDispose]() {
      await following?.[Symbol.asyncDispose]();
      for (const { output } of followed.values()) await output[Symbol.asyncDispose]();
      followed.clear();
    },
  };
}
