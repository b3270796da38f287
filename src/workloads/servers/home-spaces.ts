import { resolve } from 'node:path';
import type { Logger } from 'pino';
import type { InstanceLease } from '../../cluster/instances/instance-lease.ts';
import type { SystemAccountStore } from '../../identity/users/system-account-store.ts';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import { createPeriodic, type Periodic } from '../../platform/concurrency/periodic.ts';
import type { Config } from '../../platform/config/config.ts';
import type { HomeSpace } from '../../plugin/host/spawner.ts';
import type { HomeSpaceStore } from './home-space-store.ts';
import { homeOf } from './launch-plan.ts';
import type { Server } from './server.ts';
import type { SpawnerSet } from './spawner-set.ts';

/** How full the homes of servers are. */
export interface HomeSpaces {
  /** Undefined where this machine does not know. Never rejects. */
  find(server: Server): Promise<HomeSpace | undefined>;
}

interface HomeDeps {
  readonly config: Pick<Config, 'Spawner' | 'directory'>;
  readonly spawner: Pick<SpawnerSet, 'homeSpace'>;
}

const intervalMs = 5 * 60_000;
const parallelLooks = 4;

export function createHomeSpaces(
  deps: HomeDeps & {
    readonly instance: Pick<InstanceLease, 'machineId'>;
    readonly systemAccounts: Pick<SystemAccountStore, 'find'>;
  },
): HomeSpaces {
  const { instance, systemAccounts } = deps;
  return {
    async find(server) {
      const { userId, machineId = instance.machineId } = server;
      if (machineId !== instance.machineId) return undefined;
      try {
        return await look(server, await systemAccounts.find(userId), deps);
      } catch {
        return undefined;
      }
    },
  };
}

/** Records now and then how full the homes are in which servers of this instance run. */
export function createHomeSpaceWatch(
  deps: HomeDeps & {
    readonly lifecycle: {
      units(): Iterable<{ readonly server: Server; readonly state: Server['state'] }>;
    };
    readonly homeSpaceStore: Pick<HomeSpaceStore, 'accountsOf' | 'record'>;
    readonly log: Logger;
  },
): Periodic {
  const { lifecycle, homeSpaceStore: store, log } = deps;

  async function recordAll(): Promise<void> {
    const running = [...lifecycle.units()].filter(({ state }) => state === 'running');
    // Servers of a user have one home.
    const byUser = new Map(running.map(({ server }) => [server.userId, server]));
    if (byUser.size === 0) return;
    const accounts = await store.accountsOf([...byUser.keys()]);
    const spaces: Parameters<typeof store.record>[0][number][] = [];
    await forEachAtOnce(parallelLooks, byUser, async ([userId, server]) => {
      const space = await look(server, accounts.get(userId), deps).catch(() => undefined);
      if (space === undefined) return;
      const { totalBytes, freeBytes } = space;
      spaces.push({ userId, totalBytes, usedBytes: totalBytes - freeBytes });
    });
    await store.record(spaces);
  }

  return createPeriodic({
    intervalMs,
    work: recordAll,
    onError: (error) => log.warn({ err: error }, 'could not record how full homes are'),
  });
}

async function look(
  { userName, userOptions: { profile } }: Server,
  account: string | undefined,
  { config, spawner }: HomeDeps,
): Promise<HomeSpace | undefined> {
  const home = homeOf(config.Spawner, account ?? userName);
  return spawner.homeSpace({
    workingDirectory: resolve(config.directory, home),
    ...(typeof profile === 'string' && { profile }),
  });
}
