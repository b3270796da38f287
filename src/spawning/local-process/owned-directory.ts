import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectory } from '../../processes/make-directory.ts';
import type { SystemUser } from '../../processes/system-user.ts';

/**
 * Makes a directory for a user's server, unless it is there already: private, and owned by the
 * account the server runs as. The way to it stays passable for that account.
 */
export async function makeOwnedDirectory(
  path: string,
  user: SystemUser | undefined,
): Promise<void> {
  await makeDirectory(dirname(path), 0o711);
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (thrown) {
    if ((await stat(path).catch(() => undefined))?.isDirectory()) return;
    throw thrown;
  }
  if (user !== undefined) await giveDirectory(path, user);
}

/** Makes a private directory with an unforeseeable name, owned by the account. */
export async function makeTemporaryDirectory(
  prefix: string,
  user: SystemUser | undefined,
): Promise<string> {
  const path = await mkdtemp(prefix);
  if (user !== undefined) await giveDirectory(path, user);
  return path;
}

async function giveDirectory(path: string, user: SystemUser): Promise<void> {
  // Through a descriptor that follows no link: where the account may write to the parent, it could
  // put a link to another directory in this one's place.
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  await using directory = await open(path, flags);
  await directory.chown(user.userId, user.groupId);
}
