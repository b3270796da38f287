import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { pid as ownPid } from 'node:process';
import { forEachPid } from './process-table.ts';

/**
 * Environment variable that every supervised process carries. Whatever it starts inherits it, also a
 * daemon that left the process group and the session: only so can those be found again.
 */
export const processTagVariable = 'HUB_PROCESS_TAG';

/**
 * A tag for one start of what a family of tags stands for, such as the server of a user: to end one start
 * by its tag leaves the next one alone.
 */
export function newTag(family: string): string {
  return `${family}#${randomBytes(8).toString('hex')}`;
}

/** Family and start of a tag, `<family>#<start>`; undefined for one of another form. */
export function splitTag(
  tag: string,
): { readonly family: string; readonly start: string } | undefined {
  const [, family, start] = /^(.+)#([\w-]{1,64})$/s.exec(tag) ?? [];
  return family === undefined || start === undefined ? undefined : { family, start };
}

/**
 * Finds the processes that carry a tag. Linux only, elsewhere none; a process that replaced its
 * environment or belongs to another user than the hub's (unless the hub is root) is not seen.
 */
export async function findTaggedProcesses(tag: string): Promise<readonly number[]> {
  return (await listProcessTags()).get(tag) ?? [];
}

/** Lists the processes that carry any tag, by their tag. */
export async function listProcessTags(): Promise<ReadonlyMap<string, readonly number[]>> {
  const found = new Map<string, number[]>();
  if (platform() !== 'linux') return found;
  await forEachPid((pid) => {
    if (pid === ownPid) return;
    const tag = readProcessTag(pid);
    if (tag === undefined) return;
    const others = found.get(tag);
    if (others === undefined) found.set(tag, [pid]);
    else others.push(pid);
  });
  return found;
}

/** The tag of one process; undefined where it has none or is not seen. */
export function readProcessTag(pid: number): string | undefined {
  const environment = readEnvironment(pid);
  const at = environment.indexOf(tagStart);
  if (at === -1) return undefined;
  const end = environment.indexOf('\0', at + 1);
  // Bytes, since a path need not be text in UTF-8.
  return Buffer.from(environment.slice(at + tagStart.length, end), 'latin1').toString();
}

const tagStart = `\0${processTagVariable}=`;

/** Each byte as one character, with a NUL at both ends; empty for a process that is gone or not ours. */
function readEnvironment(pid: number): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}\0`;
  } catch {
    return '';
  }
}
