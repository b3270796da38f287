import type { ResourceUsage, SpawnerState } from '../../plugin/host/spawner.ts';
import type { ServerUnit } from './server-unit.ts';
import type { ServerWork } from './server-work.ts';
import type { SpawnerSet } from './spawner-set.ts';

/** What the runs of this instance's servers used when they were measured last. */
export interface ServerUsage {
  measureAll(): Promise<void>;
  /** Measures one before it ends; what does not answer keeps what was measured last. */
  measure(serverId: string): Promise<void>;
  /** Undefined where its present run was not measured yet. */
  of(serverId: string): ResourceUsage | undefined;
  together(): Pick<ResourceUsage, 'cpuCores' | 'memoryBytes'>;
}

export function createServerUsage(hub: {
  readonly lifecycle: {
    units(): Iterable<Pick<ServerUnit, 'server' | 'spawnerState'>>;
    unitOf(serverId: string): Pick<ServerUnit, 'spawnerState'> | undefined;
  };
  readonly spawner: Pick<SpawnerSet, 'usage'>;
  readonly serverWork: Pick<ServerWork, 'take'>;
}): ServerUsage {
  const { lifecycle, spawner, serverWork } = hub;
  type Measured = readonly [state: SpawnerState, usage: ResourceUsage];
  let measured = new Map<string, Measured>();

  return {
    async measureAll() {
      // Those that start or stop, too: they are counted from when they run to their end.
      const running = [...lifecycle.units()].flatMap(({ server, spawnerState }) =>
        spawnerState === undefined ? [] : [{ id: server.id, spawnerState }],
      );
      const usages = await spawner.usage(running.map(({ spawnerState }) => spawnerState));
      measured = new Map(
        running.flatMap(({ id, spawnerState }, index) => {
          const usage = usages[index];
          return usage === undefined ? [] : [[id, [spawnerState, usage]] as const];
        }),
      );
      serverWork.take(
        running.map(({ id }) => id),
        new Map([...measured].map(([id, [, usage]]) => [id, usage])),
      );
    },

    async measure(serverId) {
      const { spawnerState } = lifecycle.unitOf(serverId) ?? {};
      if (spawnerState === undefined) return;
      const [usage] = await spawner.usage([spawnerState]);
      if (usage !== undefined) measured.set(serverId, [spawnerState, usage]);
    },

    of(serverId) {
      const [state, usage] = measured.get(serverId) ?? [];
      return state === lifecycle.unitOf(serverId)?.spawnerState ? usage : undefined;
    },

    together() {
      let cpuCores = 0;
      let memoryBytes = 0;
      for (const [, usage] of measured.values()) {
        cpuCores += usage.cpuCores;
        memoryBytes += usage.memoryBytes;
      }
      return { cpuCores, memoryBytes };
    },
  };
}
