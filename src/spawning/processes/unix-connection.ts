import { connect, type OnReadOpts, Socket } from 'node:net';
import { dirname } from 'node:path';
import { findMoverSync } from '../../platform/files/movable-path.ts';
import { withPlace } from '../../platform/files/place.ts';
import { maySwitchAccounts } from './system-user.ts';

/** Options of `net.connect`, of which the types of Node do not know the last for plain connections. */
export interface UnixConnectOptions {
  readonly onread?: OnReadOpts;
  readonly highWaterMark?: number;
}

/**
 * Connects to a Unix socket. Where another account may move its path, and the hub may connect to more than that
 * account, the socket must be one that this account has made, and no link. It is looked at and connected to by one
 * descriptor, so that nothing else can take its place in between. An error that says so comes as one of the connection.
 */
export function connectUnix(path: string, options: UnixConnectOptions = {}): Socket {
  try {
    const mover = maySwitchAccounts() ? findMoverSync(path) : undefined;
    if (mover === undefined) return connect({ path, ...options });
    return withPlace(path, 'any', (place, stats) => {
      const isTheirs =
        mover.userId === undefined ? dirname(path) === mover.path : stats.uid === mover.userId;
      // The system looks for the socket before this returns.
      if (stats.isSocket() && isTheirs) return connect({ path: place, ...options });
      const whose = mover.userId === undefined ? '' : ` of the account ${mover.userId}`;
      throw new Error(`connect ${path}: it is no socket${whose}`);
    });
  } catch (error) {
    return new Socket().destroy(error as Error);
  }
}
