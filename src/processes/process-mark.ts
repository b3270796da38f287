import { readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { pid as ownPid } from 'node:process';
import { forEachPid } from './process-table.ts';

/**
 * Environment variable that every supervised process carries. Whatever it starts inherits it, also a
 * daemon that left the process group and the session: only so can those be found again.
 */
export const markVariable = 'HUB_PROCESS_MARK';

/**
 * Finds the processes that carry a mark. Linux only, elsewhere none; a process that replaced its
 * environment or belongs to another user than the hub's (unless the hub is root) is not seen.
 */
export async function findMarkedProcesses(mark: string): Promise<readonly number[]> {
  return (await listMarks()).get(mark) ?? [];
}

/** Lists the processes that carry any mark, by their mark. */
export async function listMarks(): Promise<ReadonlyMap<string, readonly number[]>> {
  const found = new Map<string, number[]>();
  if (platform() !== 'linux') return found;
  const start = `\0${markVariable}=`;
  await forEachPid((pid) => {
    if (pid === ownPid) return;
    const environment = readEnvironment(pid);
    const at = environment.indexOf(start);
    if (at === -1) return;
    const end = environment.indexOf('\0', at + 1);
    // Bytes, since a path need not be text in UTF-8.
    const mark = Buffer.from(environment.slice(at + start.length, end), 'latin1').toString();
    const others = found.get(mark);
    if (others === undefined) found.set(mark, [pid]);
    else others.push(pid);
  });
  return found;
}

/** Each byte as one character, with a NUL at both ends; empty for a process that is gone or not ours. */
function readEnvironment(pid: number): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}\0`;
  } catch {
    return '';
  }
}
