import type { Duplex } from 'node:stream';

const key = Symbol('upgrade status');
type Upgraded = Duplex & { [key]?: number };

/** Notes with which status a request to upgrade was answered, for which no response exists. */
export function noteUpgradeStatus(socket: Upgraded, status: number): void {
  socket[key] = status;
}

/** The status that was noted; undefined when there was no answer. */
export function upgradeStatusOf(socket: Upgraded): number | undefined {
  return socket[key];
}
