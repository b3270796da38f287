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

/**
 * Programs that the hub follows. Each takes two of its files: a log, and for a minute after each look what tells its
 * processor time.
 */
export const followedPrograms = { count: 0 };
