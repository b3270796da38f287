import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { pathOf } from './requires.ts';

/** An account of the machine that is used by nobody, and by hostile users of the tests. */
export interface HostileAccount {
  readonly name: string;
  readonly userId: number;
  readonly groupId: number;
}

export const nobody: HostileAccount = { name: 'nobody', userId: 65_534, groupId: 65_534 };
export const games: HostileAccount = { name: 'games', userId: 5, groupId: 60 };

/** Runs a shell script as the account, and waits for it. */
export function actAs({ userId, groupId }: HostileAccount, script: string, ...words: string[]) {
  return execFileSync('/bin/sh', ['-ec', script, 'sh', ...words], {
    uid: userId,
    gid: groupId,
    cwd: '/',
    encoding: 'utf8',
  });
}

/** `renameat2` with `RENAME_EXCHANGE`: two names change places, with no moment in between. */
const exchange = `
my $number = { x86_64 => 316, aarch64 => 276 }->{(POSIX::uname())[4]} or die 'no renameat2';
sub exchange { syscall($number, -100, $_[0], -100, $_[1], 2) }`;

/** A process of the account that no hub knows of, such as that of a login by ssh. */
export interface HostileProcess extends AsyncDisposable {
  readonly pid: number;
}

/**
 * Runs Perl as the account, which may call `exchange(a, b)` and has to print a line when it is ready. The hub does not
 * end it: it has neither its mark nor its cgroup.
 */
export async function runHostile(
  { userId, groupId }: HostileAccount,
  script: string,
  ...words: string[]
): Promise<HostileProcess> {
  const child = spawn(
    pathOf('perl'),
    ['-e', `use POSIX; $| = 1; ${exchange}\n${script}`, ...words],
    {
      uid: userId,
      gid: groupId,
      cwd: '/',
      env: {},
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    },
  );
  await firstLine(child);
  return {
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      const isOver = child.exitCode !== null || child.signalCode !== null;
      const ended = isOver || new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new TypeError('the hostile process has no output');
  for await (const line of createInterface({ input: stdout })) return line;
  throw new Error('the hostile process has ended before it was ready');
}
