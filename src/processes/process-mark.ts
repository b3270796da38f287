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
  if (platform() !== 'linux') return [];
  const needle = `\0${markVariable}=${mark}\0`;
  const found: number[] = [];
  await forEachPid((pid) => {
    if (pid === ownPid) return;
    try {
      if (`\0${readFileSync(`/proc/${pid}/environ`, 'utf8')}`.includes(needle)) found.push(pid);
    } catch {
      // Gone, or not ours to look at.
    }
  });
  return found;
}
