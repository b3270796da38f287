import { constants } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectory } from '../../platform/files/make-directory.ts';
import { findMover } from '../../platform/files/movable-path.ts';
import { runAs } from '../processes/as-account.ts';
import type { SystemUser } from '../processes/system-user.ts';

/**
 * Makes a directory for a user's server, unless it is there already: private, and owned by the account the server runs
 * as. The way to it stays passable for that account. What lies below a folder of another account than the hub's is
 * made by the account itself: root would follow its links.
 */
export async function makeOwnedDirectory(
  path: string,
  user: SystemUser | undefined,
  trusted: readonly number[],
): Promise<void> {
  if (user === undefined) {
    await makeDirectory(dirname(path), 0o711);
    await make(path, 0o700);
    return;
  }
  for (const each of [...foldersAbove(path), path]) {
    const mover = await findMover(each, trusted);
    if (mover !== undefined && !mover.isVacant) return makeAs(user, path);
    const isMade = await make(each, each === path ? 0o700 : 0o711);
    if (isMade && each === path) return giveDirectory(path, user);
    // Where nothing was a moment ago another account may have made one since.
    if (!isMade && (await findMover(each, trusted)) !== undefined) return makeAs(user, path);
  }
}

/** Makes a directory; false when it is there. */
async function make(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (thrown) {
    if ((await stat(path).catch(() => undefined))?.isDirectory()) return false;
    throw thrown;
  }
}

function makeAs(user: SystemUser, path: string): Promise<void> {
  return runAs(user, ['/bin/sh', '-c', 'umask 077; exec mkdir -p -- "$1"', 'sh', path]);
}

/** Gives an account a directory that the hub has just made. */
export async function giveDirectory(path: string, user: SystemUser): Promise<void> {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  await using directory = await open(path, flags);
  await directory.chown(user.userId, user.groupId);
}

/** From the root down. */
function foldersAbove(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [] : [...foldersAbove(folder), folder];
}
