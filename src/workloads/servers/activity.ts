import type { Logger } from 'pino';
import type { UserStore } from '../../identity/users/user-store.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { isStorageUnavailable } from '../../platform/errors.ts';
import type { ServerStore } from './server-store.ts';

type Recorder = Pick<UserStore | ServerStore, 'recordActivity'>;

/** When users and servers were last active: noted in memory, stored now and then. */
export interface ActivityLog extends AsyncDisposable {
  noteUser(userId: string, at?: Date): void;
  noteServer(serverId: string, at?: Date): void;
  /** Stores what was noted since the last time. */
  flush(): Promise<void>;
  /** The same before a read, but not more often than it is worth. */
  catchUp(): Promise<void>;
}

/** A clock may be wrong by this much before what it says is taken for a mistake. */
const maxFutureMs = 59 * 60_000;

/** Whether a time can be that of an activity: a date, and none of the future. */
export function isActivityTime(at: Date): boolean {
  return at.getTime() <= Date.now() + maxFutureMs;
}

/** How often what was noted is stored. */
export const flushIntervalMs = 30_000;
const catchUpIntervalMs = 1_000;

/**
 * `collectTraffic` returns what the gateway saw since the last call, so
 * that a request only writes a number into its route.
 */
export function createActivityLog(deps: {
  readonly users: Pick<UserStore, 'recordActivity'>;
  readonly servers: Pick<ServerStore, 'recordActivity'>;
  readonly collectTraffic: () => Iterable<{
    readonly serverId: string;
    readonly userId: string;
    readonly at: Date;
  }>;
  readonly log: Logger;
}): ActivityLog {
  let users = new Map<string, Date>();
  let servers = new Map<string, Date>();

  function note(entries: Map<string, Date>, id: string, reported: Date): void {
    if (!isActivityTime(reported)) return;
    // What is told ahead of its time would be in use until then.
    const at = reported.getTime() > Date.now() ? new Date() : reported;
    const known = entries.get(id);
    if (known === undefined || known < at) entries.set(id, at);
  }

  async function flush(): Promise<void> {
    for (const { serverId, userId, at } of deps.collectTraffic()) {
      note(servers, serverId, at);
      note(users, userId, at);
    }
    const [userBatch, serverBatch] = [users, servers];
    users = new Map();
    servers = new Map();
    const stored = await Promise.allSettled([
      store(userBatch, deps.users, (id, at) => note(users, id, at)),
      store(serverBatch, deps.servers, (id, at) => note(servers, id, at)),
    ]);
    const failed = stored.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Stores a batch. What fails because of the database alone is put back; throws what that said. */
  async function store(
    batch: ReadonlyMap<string, Date>,
    into: Recorder,
    putBack: (id: string, at: Date) => void,
  ): Promise<void> {
    if (batch.size === 0) return;
    try {
      return await into.recordActivity(batch);
    } catch (error) {
      if (isStorageUnavailable(error)) {
        for (const [id, at] of batch) putBack(id, at);
        throw error;
      }
    }
    // One bad entry must not cost the others theirs.
    let outage: unknown;
    for (const [id, at] of batch) {
      if (outage !== undefined) {
        putBack(id, at);
        continue;
      }
      try {
        await into.recordActivity(new Map([[id, at]]));
      } catch (error) {
        if (isStorageUnavailable(error)) {
          outage = error;
          putBack(id, at);
        } else deps.log.warn({ err: error, id, at }, 'activity skipped, cannot be stored');
      }
    }
    if (outage !== undefined) throw outage;
  }

  let caughtUp: { readonly atMs: number; readonly done: Promise<void> } | undefined;

  const flushing = createPeriodic({
    intervalMs: flushIntervalMs,
    work: flush,
    onError: (error) => deps.log.warn({ err: error }, 'could not store activity'),
  });

  return {
    noteUser: (userId, at = new Date()) => note(users, userId, at),
    noteServer: (serverId, at = new Date()) => note(servers, serverId, at),
    flush,
    catchUp() {
      const nowMs = performance.now();
      if (caughtUp === undefined || nowMs - caughtUp.atMs > catchUpIntervalMs) {
        // What is a little out of date serves a reader better than an error.
        caughtUp = { atMs: nowMs, done: flushing.run() };
      }
      return caughtUp.done;
    },
    async [Symbol.asyncDispose]() {
      await flushing[Symbol.asyncDispose]();
      await flush();
    },
  };
}
