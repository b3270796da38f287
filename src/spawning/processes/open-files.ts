import { readFileSync } from 'node:fs';

/**
 * How many files and connections this process may have open; undefined where the system does not tell or
 * sets no limit. Node has raised the soft limit to the hard one by the time this is asked.
 */
export function openFilesLimit(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

/** Of a program that the hub follows: its log, and for a minute after each look what tells its processor time. */
const filesOfProgram = 2;
let programs = 0;

/** Counts a program that the hub follows, until it is disposed of. */
export function countProgram(): Disposable {
  programs += 1;
  return {
    [Symbol.dispose]() {
      programs -= 1;
    },
  };
}

/** Files that programs need now. */
export function filesOfPrograms(): number {
  return programs * filesOfProgram;
}
