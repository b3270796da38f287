import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { Spawner } from '../../plugin/host/spawner.ts';

/** Stands in where no command for servers is configured. */
export const noSpawner: Spawner = {
  start: () =>
    Promise.reject(new HubError('unavailable', text`No servers are configured on this hub.`)),
  stop: () => Promise.resolve(),
  poll: () => Promise.resolve({ running: false }),
  restore: () => Promise.resolve(undefined),
};
