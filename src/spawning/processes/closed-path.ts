import type { Stats } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { SystemUser } from './system-user.ts';

/** Who wants to reach a file; `others` stands for any account that owns nothing on the way. */
export type Visitor = Pick<SystemUser, 'userId' | 'groupIds'> | 'others';

/** A folder that a visitor may not pass, or the file itself. */
export interface ClosedPlace {
  readonly path: string;
  /** Permission bits, such as 0o700. */
  readonly mode: number;
}

/**
 * Finds what keeps an account from running or reading a file, by the permission bits of the file and
 * of every folder above it; undefined when nothing does or the file is not there. Access lists, which
 * may open more, are not considered.
 */
export async function findClosedPlace(
  file: string,
  visitor: Visitor,
): Promise<ClosedPlace | undefined> {
  const target = await realpath(file).catch(() => undefined);
  if (target === undefined) return undefined;
  // A symbolic link is followed from where it stands, so both ways must be open.
  const folders = new Set([...foldersAbove(file), ...foldersAbove(target)]);
  for (const folder of folders) {
    const found = await stat(folder);
    if (!isGranted(found, visitor, pass)) return { path: folder, mode: found.mode & 0o7777 };
  }
  const found = await stat(target);
  // A program needs the one bit, a script the other; which of them it is decides the interpreter.
  const isOpen = isGranted(found, visitor, pass) || isGranted(found, visitor, read);
  return isOpen ? undefined : { path: target, mode: found.mode & 0o7777 };
}

const [pass, read] = [0o1, 0o4];

function isGranted({ uid, gid, mode }: Stats, visitor: Visitor, bit: number): boolean {
  if (visitor === 'others') return (mode & bit) !== 0;
  if (visitor.userId === 0) return true;
  if (uid === visitor.userId) return (mode & (bit << 6)) !== 0;
  if (visitor.groupIds.includes(gid)) return (mode & (bit << 3)) !== 0;
  return (mode & bit) !== 0;
}

/** From the root down. */
function foldersAbove(file: string): string[] {
  const folder = dirname(file);
  return folder === file ? [] : [...foldersAbove(folder), folder];
}
