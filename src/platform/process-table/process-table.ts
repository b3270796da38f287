import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { platform } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readProcessFile } from './process-file.ts';

/** One process of the machine, as the operating system lists it. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parentPid: number;
  readonly groupId: number;
  readonly sessionId: number;
  /** Whether it has ended and only waits for its parent to notice. */
  readonly isZombie: boolean;
  /** Start time in clock ticks since boot, or undefined where the system does not tell it so. */
  readonly startTicks: string | undefined;
}

/** How many processes are read before other work of the event loop gets its turn. */
const batchSize = 64;

/** Lists every process of the machine in one pass. */
export async function listProcesses(): Promise<ProcessEntry[]> {
  if (platform() !== 'linux') return listByPs();
  const entries: ProcessEntry[] = [];
  await forEachPid((pid) => {
    const entry = readProcess(pid);
    if (entry !== undefined) entries.push(entry);
  });
  return entries;
}

/** Visits every pid under /proc, yielding to the event loop between batches. */
export async function forEachPid(visit: (pid: number) => void): Promise<void> {
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  for (let start = 0; start < pids.length; start += batchSize) {
    if (start > 0) await nextTurn();
    // procfs answers from memory: synchronous reads cost a tenth of a trip to the thread pool.
    for (const pid of pids.slice(start, start + batchSize)) visit(pid);
  }
}

/** Reads one process from /proc; undefined when it is gone. Linux only. */
export function readProcess(pid: number): ProcessEntry | undefined {
  let stat: string;
  try {
    stat = readProcessFile(`/proc/${pid}/stat`).toString('latin1');
  } catch {
    return undefined;
  }
  // The name in parentheses may itself hold spaces and parentheses, so fields count from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  return {
    pid,
    parentPid: Number(fields[1]),
    groupId: Number(fields[2]),
    sessionId: Number(fields[3]),
    isZombie: state === 'Z' || state === 'X',
    startTicks: fields[19],
  };
}

/**
 * Collects, for each leader, the living processes that belong to it: its descendants, the members of
 * its process group and session, and their descendants.
 */
export function collectTrees(
  entries: readonly ProcessEntry[],
  leaders: readonly number[],
): ReadonlyMap<number, readonly number[]> {
  const living = entries.filter((entry) => !entry.isZombie);
  const children = Map.groupBy(living, (entry) => entry.parentPid);
  const groups = Map.groupBy(living, (entry) => entry.groupId);
  const sessions = Map.groupBy(living, (entry) => entry.sessionId);
  const alive = new Set(living.map((entry) => entry.pid));

  return new Map(
    leaders.map((leader) => {
      const found = new Set<number>();
      const pending = [
        ...(alive.has(leader) ? [leader] : []),
        ...(groups.get(leader) ?? []).map((entry) => entry.pid),
        ...(sessions.get(leader) ?? []).map((entry) => entry.pid),
      ];
      for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
        if (found.has(pid)) continue;
        found.add(pid);
        for (const child of children.get(pid) ?? []) pending.push(child.pid);
      }
      return [leader, [...found]];
    }),
  );
}

async function listByPs(): Promise<ProcessEntry[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat='], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return stdout
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parentPid, groupId, state = ''] = line.trim().split(/\s+/);
      return {
        pid: Number(pid),
        parentPid: Number(parentPid),
        groupId: Number(groupId),
        sessionId: 0,
        isZombie: state.startsWith('Z'),
        startTicks: undefined,
      };
    });
}
