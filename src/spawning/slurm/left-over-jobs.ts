import { userInfo } from 'node:os';
import type { PluginLog } from '../../logging/plugin-log.ts';
import type { SpawnerHost } from '../../plugin-host/spawner.ts';
import type { SlurmCommands } from './slurm-commands.ts';

/** A job as it is cancelled: under its account, undefined for that of the hub. */
export interface CancelledJob {
  readonly jobId: string;
  readonly account: string | undefined;
}

/** Jobs of this hub of which it was never told, because it was killed while it submitted them. */
export interface LeftOverJobs {
  /** What marks the jobs of a server: their comment. */
  commentOf(serverId: string): string;
  /** Ends all jobs of a server. Whatever a killed hub was about to submit may come later: see `endLate`. */
  endAllOf(serverId: string, graceMs: number): Promise<void>;
  /** Before a start: ends what was submitted after `endAllOf`. */
  endLate(serverId: string): Promise<void>;
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
  readonly end: (job: CancelledJob, graceMs: number) => Promise<void>;
  readonly log: PluginLog;
}): LeftOverJobs {
  const { commands, isKnown, end, log } = deps;
  const prefix = `hub:${deps.hubTag}:`;
  /** Servers whose start was given up with a hub that was killed, and which have not been started since. */
  const uncertain = new Set<string>();

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

  async function endThoseOf(serverId: string, graceMs: number): Promise<void> {
    for (const job of await listOwn()) if (job.serverId === serverId) await end(job, graceMs);
  }

  return {
    commentOf: (serverId) => prefix + serverId,

    async endAllOf(serverId, graceMs) {
      uncertain.add(serverId);
      await endThoseOf(serverId, graceMs);
    },

    async endLate(serverId) {
      if (!uncertain.has(serverId)) return;
      await endThoseOf(serverId, 0);
      uncertain.delete(serverId);
    },

    async sweep() {
      const jobs = await listOwn();
      const known = jobs.filter(({ jobId }) => isKnown(jobId));
      const served = new Set(known.map(({ serverId }) => serverId));
      const unknown = jobs.filter((job) => !known.includes(job));
      if (unknown.length === 0) return;
      // Asked after the list: a job that is on it and whose server is not active by now is left over.
      const active = await deps.activeServers(unknown.map(({ serverId }) => serverId));
      for (const job of unknown) {
        const { jobId, serverId } = job;
        if (isKnown(jobId) || (active.has(serverId) && !served.has(serverId))) continue;
        await end(job, 0);
        log.warn({ jobId, serverId }, 'cancelled a job that was left over');
      }
    },
  };
}
