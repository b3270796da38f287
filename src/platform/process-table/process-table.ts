import { execFile, execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { platform } from 'node:os';
import { kill } from 'node:process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';

let buffer = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * Reads a file under /proc, or of a cgroup. What it returns is overwritten by the next call; throws where the file cannot
 * be read. These files tell no size, so `readFileSync` would allocate 64 KiB for each of some thousand.
 */
export function readProcessFile(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    for (let length = 0; ; ) {
      if (length === buffer.length) buffer = Buffer.concat([buffer], 2 * length);
      const count = readSync(file, buffer, length, buffer.length - length, null);
      if (count === 0) return buffer.subarray(0, length);
      length += count;
    }
  } finally {
    closeSync(file);
  }
}

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

/** A process that cannot be mistaken for a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the operating system tells it; opaque, compared as text. */
  readonly startTime: string;
}

/** Identifies a running process, or returns undefined when there is none (a zombie has ended). */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  return identify(pid, { includeZombie: false });
}

/**
 * Identifies a child that was spawned just now, even one that has ended already. Synchronous on
 * purpose: as long as no other code runs, the child stays in the process table.
 */
export function identifyChild(pid: number): ProcessIdentity | undefined {
  return identify(pid, { includeZombie: true });
}

/** Whether the process still runs, and is the same one and not another that got its pid. */
export function isSameProcess(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startTime === identity.startTime;
}

/** Whether a process has surely ended, also where the processes of other accounts are hidden. */
export function isProcessGone(identity: ProcessIdentity): boolean {
  if (isSameProcess(identity)) return false;
  try {
    kill(identity.pid, 0);
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ESRCH') return true;
  }
  // Something has this pid: if that can be seen, it is a zombie or another process.
  return identify(identity.pid, { includeZombie: true }) !== undefined;
}

function identify(pid: number, options: IdentifyOptions): ProcessIdentity | undefined {
  const startTime =
    platform() === 'linux' ? startTimeFromProc(pid, options) : startTimeFromPs(pid, options);
  return startTime === undefined ? undefined : { pid, startTime };
}

interface IdentifyOptions {
  readonly includeZombie: boolean;
}

function startTimeFromProc(pid: number, { includeZombie }: IdentifyOptions): string | undefined {
  const entry = readProcess(pid);
  if (entry === undefined || (entry.isZombie && !includeZombie)) return undefined;
  // Ticks count from boot, so without the boot they would repeat after every restart of the machine.
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return `${bootId}/${entry.startTicks}`;
}

function startTimeFromPs(pid: number, { includeZombie }: IdentifyOptions): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    const [, state = '', startedAt] = /^(\S+)\s+(.+)$/.exec(line) ?? [];
    return state.startsWith('Z') && !includeZombie ? undefined : startedAt;
  } catch {
    return undefined;
  }
}
