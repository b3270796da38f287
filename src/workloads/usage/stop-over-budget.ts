import type { Logger } from 'pino';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import type { ServerLimitsStore } from '../servers/server-row-store.ts';
import type { UserServers } from '../servers/user-servers.ts';
import type { Budgets } from './budgets.ts';
import type { Subject } from './count-use.ts';

const parallelStops = 16;

/** Stops those of some running servers whose budgets are used up, where the budgets say so; does not wait for that. */
export function createStopOverBudget(hub: {
  readonly budgets: Pick<Budgets, 'statesOf'>;
  readonly limitsStore: Pick<ServerLimitsStore, 'end'>;
  readonly instance: { readonly id: string };
  readonly servers: Pick<UserServers, 'stopAtLimit'>;
  readonly log: Logger;
}): (
  running: readonly { readonly serverId: string; readonly subject: Subject }[],
) => Promise<void> {
  const { budgets, limitsStore, instance, servers, log } = hub;
  return async (running) => {
    const states = await budgets.statesOf(running.map(({ subject }) => subject));
    const over = running.filter((_, place) =>
      states[place]?.some(({ part, budget }) => part >= 1 && budget.when_over === 'stop'),
    );
    const ids = await limitsStore.end(
      instance.id,
      over.map(({ serverId: id }) => ({
        id,
        lastActivityAt: null,
        keptUntil: null,
        reason: 'budget',
      })),
    );
    void forEachAtOnce(parallelStops, ids, async (id) => {
      try {
        await servers.stopAtLimit(id, 'budget');
      } catch (error) {
        log.error({ err: error, serverId: id }, 'server over budget could not be stopped');
      }
    });
  };
}
