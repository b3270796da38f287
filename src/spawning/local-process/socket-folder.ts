import { chmod, lstat, mkdir, mkdtemp, rm, rmdir, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { geteuid } from 'node:process';
import { maxSocketPathBytes } from '../../platform/config/bind-address.ts';
import { HubError } from '../../platform/errors.ts';
import { explainMover, findMover } from '../../platform/files/movable-path.ts';
import { text } from '../../platform/texts/text.ts';
import { runAs } from '../processes/as-account.ts';
import { findClosedPlace } from '../processes/closed-path.ts';
import type { SystemUser } from '../processes/system-user.ts';
import { giveDirectory } from './owned-directory.ts';

/**
 * The folder of a server's socket: one of the hub's, which no other account may change, and in it one of the server's
 * account. So that account has a place for its socket, and cannot put another folder there.
 */
const socketName = 'server.sock';
const innerName = 's';

/** Makes the folder of a socket with an unforeseeable name, as short as the path of a socket has to be. */
export async function makeSocketFolder(
  runtimeDirectory: string,
  user: SystemUser | undefined,
): Promise<{ readonly folder: string; readonly socket: string }> {
  const folder = await mkdtemp(await choosePrefix(runtimeDirectory, user));
  const mover = user && (await findMover(folder));
  if (mover !== undefined) {
    await rmdir(folder);
    throw new HubError(
      'unavailable',
      text`There is no place for a socket: ${explainMover(folder, mover)}.`,
    );
  }
  const inner = join(folder, innerName);
  await mkdir(inner, { mode: 0o700 });
  if (user !== undefined) {
    await giveDirectory(inner, user);
    await chmod(folder, 0o711);
  }
  return { folder, socket: join(inner, socketName) };
}

/** In the hub's own folder, or in the temporary one where that is too deep, not passable or another account's. */
async function choosePrefix(
  runtimeDirectory: string,
  user: SystemUser | undefined,
): Promise<string> {
  const own = join(runtimeDirectory, 'srv-');
  const prefix = (await isPlace(own, user)) ? own : join(tmpdir(), 'hub-srv-');
  if (isShortEnough(prefix)) return prefix;
  throw new HubError('unavailable', text`The path ${prefix}… is too long for a Unix socket.`, {
    hint: text`Give the hub a shorter runtime directory or TMPDIR.`,
  });
}

async function isPlace(prefix: string, user: SystemUser | undefined): Promise<boolean> {
  if (!isShortEnough(prefix)) return false;
  if (user === undefined) return true;
  if ((await findMover(prefix)) !== undefined) return false;
  return (await findClosedPlace(join(prefix, '..'), user)) === undefined;
}

function isShortEnough(prefix: string): boolean {
  return Buffer.byteLength(`${prefix}XXXXXX/${innerName}/${socketName}`) <= maxSocketPathBytes;
}

/**
 * Removes the folder of a socket. What its account has put beside the socket is removed under that account; root takes
 * away single names only. Rejects when something is left.
 */
export async function removeSocketFolder(folder: string): Promise<void> {
  const mover = await findMover(folder);
  // An earlier version gave it to the account whole, which may have moved it.
  if (mover !== undefined) throw new Error(explainMover(folder, mover));
  const inner = join(folder, innerName);
  const stats = await lstat(inner).catch(() => undefined);
  if (stats === undefined || stats.uid === geteuid?.()) {
    await rm(folder, { recursive: true, force: true });
    return;
  }
  await unlink(join(inner, socketName)).catch(() => undefined);
  await rmdir(inner).catch(async () => {
    const account = { userId: stats.uid, groupId: stats.gid };
    await runAs(account, ['find', inner, '-mindepth', '1', '-xdev', '-delete']);
    await rmdir(inner);
  });
  await rmdir(folder);
}
