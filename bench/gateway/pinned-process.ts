import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

/** The proxy under test runs on the first core; upstream and load share the second. */
export const proxyCore = 0;
export const loadCore = 1;
/** Where everything shares them. */
export const bothCores = '0,1';
/** One core, or several as taskset names them. */
export type Cores = number | string;

/** A process, and what it used. */
export interface MeteredProcess {
  readonly pid: number;
  /** Seconds of CPU used so far, user and system, every thread. */
  cpuSeconds(): number;
  residentBytes(): number;
}

/** A program that runs on one core, and ends when it is disposed of. */
export interface PinnedProcess extends MeteredProcess, AsyncDisposable {}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Starts a program on one core and waits until it listens. */
export async function startPinned(options: {
  readonly core: Cores;
  readonly command: readonly [string, ...string[]];
  readonly port: number;
  readonly environment?: Readonly<Record<string, string>>;
  /** Asks the program to end instead of killing it, so that its own children end with it. */
  readonly isEndedByTerm?: boolean;
}): Promise<PinnedProcess> {
  const { core, command, port, isEndedByTerm = false } = options;
  const [program, ...args] = onCore(core, command);
  // This process has no core of its own: a log that it reads too slowly would wait in the memory of its program.
  const [tail, ...tailArgs] = onCore(loadCore, ['tail', '-c', '4000']);
  const reader = spawn(tail, tailArgs, { stdio: ['pipe', 'pipe', 'inherit'] });
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', reader.stdin],
    env: { ...process.env, NODE_ENV: 'production', ...options.environment },
  });
  reader.stdin.destroy();
  const complaints = text(reader.stdout);
  await listening(port, child).catch(async (error: Error) => {
    child.kill('SIGKILL');
    throw new Error(`${error.message}: ${await complaints}`);
  });
  return {
    ...meteredProcess(child.pid ?? 0),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(isEndedByTerm ? 'SIGTERM' : 'SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** The figures of a process that something else started and ends. */
export function meteredProcess(pid: number): MeteredProcess {
  return {
    pid,
    cpuSeconds: () => cpuSecondsOf(pid),
    residentBytes: () => residentBytesOf(pid),
  };
}

/**
 * A command that runs on one core, ahead of whatever else the machine does where that is permitted.
 * Each of the wrappers replaces itself by the next, so the child's pid is the program's.
 */
export function onCore(core: Cores, command: readonly string[]): [string, ...string[]] {
  const pinned = ['taskset', '-c', String(core), ...command] as const;
  return process.getuid?.() === 0 ? ['nice', '-n', '-15', ...pinned] : [...pinned];
}

/** Seconds of CPU used so far by the threads that live now, to the microsecond. */
export function exactCpuSeconds({ pid }: Pick<MeteredProcess, 'pid'>): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanos = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]),
  );
  return nanos.reduce((sum, each) => sum + each, 0) / 1e9;
}

function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name of the program, in parentheses, may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function residentBytesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}

async function listening(port: number, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error('a program ended at once');
    if (Date.now() > deadline) throw new Error(`nothing listens on ${port}`);
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
