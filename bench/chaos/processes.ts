import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import process from 'node:process';

/** A process that belongs to a folder. */
export interface FoundProcess {
  readonly pid: number;
  readonly command: string;
}

/** Children and their children, of a process. */
export function descendantsOf(pid: number): number[] {
  const children = pids().filter((each) => parentOf(each) === pid);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

/** Processes that work in a folder or were told of it in their environment; dead ones left out. */
export function processesOf(folder: string): FoundProcess[] {
  return pids().flatMap((pid) => {
    if (pid === process.pid || stateOf(pid) === 'Z') return [];
    const isOurs = read(`/proc/${pid}/environ`).includes(folder) || worksIn(pid).startsWith(folder);
    return isOurs ? [{ pid, command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ') }] : [];
  });
}

/** Sends a signal; a process that has gone meanwhile is none the worse. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function pids(): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0);
}

function parentOf(pid: number): number {
  return Number(fieldsOf(pid)[1]);
}

function stateOf(pid: number): string | undefined {
  return fieldsOf(pid)[0];
}

/** What stands behind the name of the program, which may hold anything (proc(5)). */
function fieldsOf(pid: number): string[] {
  const text = read(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function worksIn(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
