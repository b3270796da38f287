import type { Logger } from 'pino';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import type { SpawnerState } from '../../plugin/host/spawner.ts';
import type { ServerLifecycle } from './server-lifecycle.ts';
import { type ServerLimitsStore, serverAuditEvent } from './server-row-store.ts';
import type { SpawnerSet } from './spawner-set.ts';

/** Pauses servers of this instance, and lets them go on. */
export interface ServerPauses {
  /** False where the server cannot be paused, and goes on. */
  pause(serverId: string): Promise<boolean>;
  wake(serverId: string): Promise<void>;
}

export function createServerPauses(deps: {
  readonly instance: { readonly id: string };
  readonly lifecycle: Pick<ServerLifecycle, 'unitOf'>;
  readonly spawner: Pick<SpawnerSet, 'pause' | 'unpause'>;
  readonly store: Pick<ServerLimitsStore, 'setPaused'>;
  readonly audit: Pick<AuditTrail, 'recordAlone'>;
  /** Counts what a server used as what it is still. */
  readonly count: (serverId: string) => Promise<void>;
  readonly log: Logger;
}): ServerPauses {
  const { instance, lifecycle, spawner, store, audit, count, log } = deps;

  /** What is done to a server that runs here. */
  function runningOf(serverId: string) {
    const unit = lifecycle.unitOf(serverId);
    if (unit?.state !== 'running' || unit.spawnerState === undefined) return undefined;
    const { spawnerState, server } = unit;
    const event = (action: 'server.pause' | 'server.wake') =>
      audit.recordAlone(
        serverAuditEvent(action, { name: server.name, user_name: server.userName }),
      );
    return { unit, spawnerState, event };
  }

  async function rests(spawnerState: SpawnerState): Promise<boolean> {
    try {
      return await spawner.pause(spawnerState);
    } catch (error) {
      log.error({ err: error }, 'spawner could not pause a server');
      return false;
    }
  }

  return {
    async pause(serverId) {
      const running = runningOf(serverId);
      if (running !== undefined) await count(serverId);
      // Before it rests: a hub that is killed in between leaves one that the next use finds paused.
      if (running === undefined || !(await store.setPaused(instance.id, serverId, true)))
        return false;
      const { unit, spawnerState, event } = running;
      if (!(await rests(spawnerState))) {
        log.warn({ serverId }, 'server could not be paused, it is stopped');
        await store.setPaused(instance.id, serverId, false);
        return false;
      }
      // A stop that began meanwhile waits for its processes.
      if (unit.state !== 'running') await spawner.unpause(spawnerState);
      await event('server.pause');
      return true;
    },

    async wake(serverId) {
      const running = runningOf(serverId);
      if (running === undefined) return;
      await spawner.unpause(running.spawnerState);
      await count(serverId);
      if (await store.setPaused(instance.id, serverId, false)) await running.event('server.wake');
    },
  };
}
