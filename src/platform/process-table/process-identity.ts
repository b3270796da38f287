import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { kill } from 'node:process';
import { readProcess } from './process-table.ts';

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
