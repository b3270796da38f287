import { userInfo } from 'node:os';
import { createBatchLoader } from '../../platform/concurrency/answer-cache.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { SpawnerHost } from '../../plugin/host/spawner.ts';
import type { SlurmCommands } from './slurm-commands.ts';

/** A job as it is cancelled: under its account, undefined for that of the hub. */
export interface CancelledJob {
  readonly jobId: string;
  readonly account: string | undefined;
}

export interface EndOptions {
  readonly graceMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Jobs of this hub that it takes for ended: it was killed while it submitted them, or Slurm did not end them when it was
 * told to.
 */
export interface LeftOverJobs {
  /** What marks the jobs of a server: their comment. */
  commentOf(serverId: string): string;
  /**
   * Ends all jobs of a server: before a start too, lest it run twice; then only those of the account that the server
   * starts under, since anyone may write its comment. Throws when one goes on.
   */
  endAllOf(
    serverId: string,
    options: EndOptions & { readonly only?: Pick<CancelledJob, 'account'> },
  ): Promise<void>;
  /** Ends the jobs of servers that are not active, and further jobs of those that are. */
  sweep(): Promise<void>;
}

export function createLeftOverJobs(deps: {
  readonly commands: Pick<SlurmCommands, 'listCommented'>;
  /** Tells the jobs of this hub from those of others with the same job name. */
  readonly hubTag: string;
  readonly activeServers: SpawnerHost['activeServers'];
  /** Whether this process started a job or found it again. */
  readonly isKnown: (jobId: string) => boolean;
  readonly end: (job: CancelledJob, options: EndOptions) => Promise<void>;
  readonly log: PluginLog;
}): LeftOverJobs {
  const { commands, isKnown, end, log } = deps;
  const prefix = `hub:${deps.hubTag}:`;

  async function listOwn(): Promise<(CancelledJob & { readonly serverId: string })[]> {
    const own = userInfo().username;
    return (await commands.listCommented())
      .filter(({ comment }) => comment.startsWith(prefix))
      .map(({ id, account, comment }) => ({
        jobId: id,
        account: account === own ? undefined : account,
        serverId: comment.slice(prefix.length),
      }));
  }

  /** Asked for by many starts at once, it is one question to Slurm. */
  const jobsOf = createBatchLoader<string, readonly CancelledJob[]>(async () =>
    Map.groupBy(await listOwn(), ({ serverId }) => serverId),
  );

  return {
    commentOf: (serverId) => prefix + serverId,

    async endAllOf(serverId, { only, ...options }) {
      const jobs = (await jobsOf(serverId)) ?? [];
      const own = only?.account === userInfo().username ? undefined : only?.account;
      for (const job of jobs) {
        if (only === undefined || job.account === own) await end(job, options);
      }
    },

    async sweep() {
      const jobs = await listOwn();
      const known = jobs.filter(({ jobId }) => isKnown(jobId));
      const served = new Set(known.map(keyOf));
      const unknown = jobs.filter((job) => !known.includes(job));
      if (unknown.length === 0) return;
      // Asked after the list: a job that is on it and whose server is not active by now is left over.
      const active = await deps.activeServers(unknown.map(({ serverId }) => serverId));
      for (const job of unknown) {
        const { jobId, serverId } = job;
        if (isKnown(jobId) || (active.has(serverId) && !served.has(keyOf(job)))) continue;
        await end(job, { graceMs: 0 });
        log.warn({ jobId, serverId }, 'orphaned job cancelled');
      }
    },
  };
}

/** A job speaks for the servers of its own account: its owner can write the comment of any. */
function keyOf({
  account = '',
  serverId,
}: {
  account: string | undefined;
  serverId: string;
}): string {
  return `${account} ${serverId}`;
}
