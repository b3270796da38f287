import type { ResourceUsage, Spawner, SpawnerState } from '../../plugin/host/spawner.ts';

/** What servers of one spawner use, in the order of their states. Never rejects. */
export type BoundedUsage = (
  states: readonly SpawnerState[],
) => Promise<readonly (ResourceUsage | undefined)[]>;

const limitMs = 8_000;

/**
 * Asks a spawner what its servers use. The figures are for display: a spawner that does not say in time, or
 * fails, has none, and one that hangs is not asked again until it has answered.
 */
export function createBoundedUsage(
  spawner: Pick<Spawner, 'usage'>,
  options: { readonly limitMs?: number } = {},
): BoundedUsage {
  let isUnderWay = false;

  async function ask(
    states: readonly SpawnerState[],
  ): Promise<readonly (ResourceUsage | undefined)[]> {
    isUnderWay = true;
    try {
      return (await spawner.usage?.(states)) ?? [];
    } catch {
      return [];
    } finally {
      isUnderWay = false;
    }
  }

  return async (states) => {
    if (isUnderWay || spawner.usage === undefined || states.length === 0) return [];
    const late = Promise.withResolvers<readonly undefined[]>();
    const timer = setTimeout(() => late.resolve([]), options.limitMs ?? limitMs);
    timer.unref();
    try {
      return await Promise.race([ask(states), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}
