import { readdirSync, readFileSync } from 'node:fs';
import { collectTrees, readProcess } from '../../src/platform/process-table/process-table.ts';

/** Kills processes and what they started. */
export function killTrees(leaders: readonly number[]): void {
  const entries = pidsOfMachine().flatMap((pid) => readProcess(pid) ?? []);
  const found = new Set([...collectTrees(entries, leaders).values()].flat());
  found.delete(process.pid);
  for (const pid of found) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

/**
 * Kills what names a folder in its arguments or its environment, and what that started. It waits for nothing, so that
 * it can be the last deed of a program.
 */
export function killProcessesOf(directory: string): void {
  const names = (pid: number, file: string) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'latin1').includes(directory);
    } catch {
      return false;
    }
  };
  const isMeant = (pid: number) =>
    pid !== process.pid && (names(pid, 'cmdline') || names(pid, 'environ'));
  // What forks at this moment is found again.
  for (let round = 0; round < 3; round += 1) killTrees(pidsOfMachine().filter(isMeant));
}

function pidsOfMachine(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}
