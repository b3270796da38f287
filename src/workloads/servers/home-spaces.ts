import { resolve } from 'node:path';
import type { InstanceLease } from '../../cluster/instances/instance-lease.ts';
import type { SystemAccountStore } from '../../identity/users/system-account-store.ts';
import type { Config } from '../../platform/config/config.ts';
import type { HomeSpace } from '../../plugin/host/spawner.ts';
import { homeOf } from './launch-plan.ts';
import type { Server } from './server.ts';
import type { SpawnerSet } from './spawner-set.ts';

/** How full the homes of servers are. */
export interface HomeSpaces {
  /** Undefined where this machine does not know. Never rejects. */
  find(server: Server): Promise<HomeSpace | undefined>;
}

export function createHomeSpaces(deps: {
  readonly config: Pick<Config, 'Spawner' | 'directory'>;
  readonly instance: Pick<InstanceLease, 'machineId'>;
  readonly systemAccounts: Pick<SystemAccountStore, 'find'>;
  readonly spawner: Pick<SpawnerSet, 'homeSpace'>;
}): HomeSpaces {
  const { config, instance, systemAccounts, spawner } = deps;
  return {
    async find({ userId, userName, userOptions, machineId = instance.machineId }) {
      if (machineId !== instance.machineId) return undefined;
      const { profile } = userOptions;
      try {
        const home = homeOf(config.Spawner, (await systemAccounts.find(userId)) ?? userName);
        return await spawner.homeSpace({
          workingDirectory: resolve(config.directory, home),
          ...(typeof profile === 'string' && { profile }),
        });
      } catch {
        return undefined;
      }
    },
  };
}
