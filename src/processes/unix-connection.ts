import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { connect, type OnReadOpts, Socket } from 'node:net';
import { dirname } from 'node:path';
import { findMoverSync } from '../files/movable-path.ts';
import { maySwitchAccounts } from './system-user.ts';

/** Options of `net.connect`, of which the types of Node do not know the last for plain connections. */
export interface UnixConnectOptions {
  readonly onread?: OnReadOpts;
  readonly highWaterMark?: number;
}

/** Linux, open(2): a descriptor that stands for a place and opens nothing. */
const placeOnly = 0o10_000_000;

/**
 * Connects to a Unix socket. Where another account may move its path, and the hub may connect to more than that
 * account, the socket must be one that this account has made, and no link: it is looked at and connected to by one
 * descriptor, so that nothing else can take its place in between. An error that says so comes as one of the connection.
 */
export function connectUnix(path: string, options: UnixConnectOptions = {}): Socket {
  let descriptor: number | undefined;
  try {
    descriptor = maySwitchAccounts() ? openForeign(path) : undefined;
    return connect({
      path: descriptor === undefined ? path : `/proc/self/fd/${descriptor}`,
      ...options,
    });
  } catch (error) {
    return new Socket().destroy(error as Error);
  } finally {
    // The system has found the socket by now.
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** A descriptor of a checked socket; undefined where no other account can move its path. */
function openForeign(path: string): number | undefined {
  const mover = findMoverSync(path);
  if (mover === undefined) return undefined;
  const descriptor = openSync(path, placeOnly | constants.O_NOFOLLOW);
  try {
    const stats = fstatSync(descriptor);
    const isTheirs =
      mover.userId === undefined ? dirname(path) === mover.path : stats.uid === mover.userId;
    if (stats.isSocket() && isTheirs) return descriptor;
    const whose = mover.userId === undefined ? 'of the folder' : `of the account ${mover.userId}`;
    throw new Error(`connect ${path}: it is no socket ${whose}`);
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}
