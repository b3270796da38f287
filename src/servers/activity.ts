import type { Logger } from 'pino';
import { createPeriodic } from '../concurrency/periodic.ts';
import type { UserStore } from '../users/user-store.ts';
import type { ServerStore } from './server-store.ts';

/** When users and servers were last active: noted in memory, stored now and then. */
export interface ActivityLog extends AsyncDisposable {
  noteUser(userId: string, at?: Date): void;
  noteServer(serverId: string, at?: Date): void;
  /** Stores what was noted since the last time. */
  flush(): Promise<void>;
  /** Does the same for somebody who is about to read it, but not more often than that is worth it. */
  catchUp(): Promise<void>;
}

const flushIntervalMs = 30_000;
const catchUpIntervalMs = 1_000;

/**
 * Creates the activity log. `collectTraffic` returns what the gateway saw since it was last asked, so
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

  function note(entries: Map<string, Date>, id: string, at: Date): void {
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
    if (userBatch.size > 0) await deps.users.recordActivity(userBatch);
    if (serverBatch.size > 0) await deps.servers.recordActivity(serverBatch);
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
