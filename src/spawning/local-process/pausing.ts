import type { Spawner, SpawnerState } from '../../plugin/host/spawner.ts';
import { canFreeze, systemCgroups } from '../processes/cgroup.ts';
import { readServerState } from './server-state.ts';

/** Lets a spawner of local processes pause them, where the kernel can. */
export function withPausing(spawner: Spawner): Spawner {
  if (!canFreeze()) return spawner;
  const freeze = (spawnerState: SpawnerState, isFrozen: boolean): boolean => {
    const state = readServerState(spawnerState);
    return state !== undefined && systemCgroups.freeze(state.tag, isFrozen);
  };
  return {
    ...spawner,
    pause: async (state) => freeze(state, true),
    async unpause(state) {
      freeze(state, false);
    },
    async stop(state, options) {
      // It gets its signal only when it goes on.
      freeze(state, false);
      await spawner.stop(state, options);
    },
  };
}
