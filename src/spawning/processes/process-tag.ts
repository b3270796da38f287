import { randomBytes } from 'node:crypto';
import { platform } from 'node:os';
import { pid as ownPid } from 'node:process';
import { forEachPid, readProcessFile } from '../../platform/process-table/process-table.ts';

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
  const isFirst = environment.subarray(0, tagStart.length).equals(tagStart);
  const at = isFirst ? 0 : environment.indexOf(laterTagStart) + 1;
  if (at === 0 && !isFirst) return undefined;
  const start = at + tagStart.length;
  const end = environment.indexOf(0, start);
  return environment.toString('utf8', start, end === -1 ? undefined : end);
}

const tagStart = Buffer.from(`${processTagVariable}=`);
const laterTagStart = Buffer.from(`\0${processTagVariable}=`);
const empty = Buffer.alloc(0);

/** Empty for a process that is gone or not ours; see `readProcessFile`. */
function readEnvironment(pid: number): Buffer {
  try {
    return readProcessFile(`/proc/${pid}/environ`);
  } catch {
    return empty;
  }
}
