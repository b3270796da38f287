import { lstatSync, readlinkSync, type Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { geteuid } from 'node:process';

/** Who may put something else in the place of a path. */
export interface Mover {
  /** Where the part begins that is not the hub's own: a folder, or the path itself. */
  readonly path: string;
  /** Account that owns it; undefined where several accounts may write. */
  readonly userId: number | undefined;
  /** Whether nothing is there yet, in a folder where each account may make files of its own, such as `/tmp`. */
  readonly isVacant: boolean;
}

/** What is at a path; undefined where nothing is. */
interface Place {
  readonly stats: Stats;
  /** Of a symbolic link. */
  readonly target: string | undefined;
}

/**
 * Finds the first account, beside root and that of the hub, that may put something else in the place of a path: by a
 * folder of its own on the way, or one that many may write to. Undefined where none may, so that the path can be used
 * without a race. Further accounts and groups can be trusted, such as that whose folder the hub itself stands in. Access
 * lists beyond the permission bits are not considered. Throws what the system says where it cannot be looked at.
 */
export async function findMover(
  path: string,
  trustedUsers: readonly number[] = [],
  trustedGroups: readonly number[] = [],
): Promise<Mover | undefined> {
  const looking = look(path, trustedUsers, trustedGroups);
  for (let step = looking.next(); ; ) {
    if (step.done) return step.value;
    step = looking.next(await place(step.value));
  }
}

/** The one account, if any, that may put something else in the place of what is the hub's own: it is trusted anyway. */
export async function findOperator(ownPath: string): Promise<readonly number[]> {
  const userId = (await findMover(ownPath))?.userId;
  return userId === undefined ? [] : [userId];
}

/** As `findMover`, for paths on local file systems only: it waits for them. */
export function findMoverSync(path: string): Mover | undefined {
  const looking = look(path, [], []);
  for (let step = looking.next(); ; ) {
    if (step.done) return step.value;
    step = looking.next(placeSync(step.value));
  }
}

/** path_resolution(7). */
const maxLinks = 40;

function* look(
  path: string,
  trustedUsers: readonly number[],
  trustedGroups: readonly number[],
): Generator<string, Mover | undefined, Place | undefined> {
  const trusted = new Set([0, geteuid?.(), ...trustedUsers]);
  let folder = '/';
  let names = partsOf(resolve(path));
  for (let links = 0; ; ) {
    const inside = (yield folder)?.stats;
    if (inside === undefined) return undefined;
    if (!trusted.has(inside.uid)) return { path: folder, userId: inside.uid, isVacant: false };
    const isShared = mayOthersWrite(inside, trustedGroups);
    const isSticky = (inside.mode & 0o1000) !== 0;
    if (isShared && !isSticky) return { path: folder, userId: undefined, isVacant: false };
    const [name, ...rest] = names;
    if (name === undefined) return undefined;
    const next = join(folder, name);
    const found = yield next;
    if (found === undefined) {
      return isShared ? { path: folder, userId: undefined, isVacant: true } : undefined;
    }
    const { stats, target } = found;
    if (isShared && !trusted.has(stats.uid)) {
      return { path: next, userId: stats.uid, isVacant: false };
    }
    if (target !== undefined) {
      links += 1;
      if (links > maxLinks) return { path: next, userId: stats.uid, isVacant: false };
      const from = target.startsWith('/') ? '/' : folder;
      // Without links in `folder`, `..` can be taken out of the text.
      const whole = partsOf(resolve(from, target));
      folder = '/';
      names = [...whole, ...rest];
    } else if (rest.length === 0) {
      return undefined;
    } else {
      folder = next;
      names = rest;
    }
  }
}

/**
 * Whether a folder is open to other users. A group of the system, such as `syslog` on `/var/log`, holds no users; that
 * of 100 does: `users`.
 */
function mayOthersWrite({ mode, gid }: Stats, trustedGroups: readonly number[]): boolean {
  if ((mode & 0o002) !== 0) return true;
  return (mode & 0o020) !== 0 && (gid >= 1000 || gid === 100) && !trustedGroups.includes(gid);
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

async function place(path: string): Promise<Place | undefined> {
  try {
    const stats = await lstat(path);
    return { stats, target: stats.isSymbolicLink() ? await readlink(path) : undefined };
  } catch (error) {
    return unlessThere(error);
  }
}

function placeSync(path: string): Place | undefined {
  try {
    const stats = lstatSync(path);
    return { stats, target: stats.isSymbolicLink() ? readlinkSync(path) : undefined };
  } catch (error) {
    return unlessThere(error);
  }
}

function unlessThere(error: unknown): undefined {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
  throw error;
}

/** A sentence that says whose the path is, and how to mend it. */
export function explainMover(path: string, { path: place, userId }: Mover): string {
  const whose =
    userId === undefined
      ? 'can be written to by other accounts'
      : `belongs to the account ${userId}`;
  return `${place} ${whose}, which could put something else in the place of ${path}; use a folder below ones that only root can write to`;
}
