import { existsSync } from 'node:fs';
import type { MadeCgroup } from './cgroup.ts';

const shell = '/bin/sh';

/** Descriptor on which a command that waits is told to begin, and then gets its environment. */
const gateDescriptor = 3;

/** Whether a shell can hand on a variable of this name. */
export function isShellName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
}

/** Those that a shell sets itself; `bash` lets nobody else set the last ones. */
const shellOwn = /^(?:PWD|OLDPWD|SHLVL|_|ENV|UID|EUID|PPID|BASH\w*|SHELLOPTS)$/;

/** Whether a command can be begun by the shell, which hands an environment on as it is. */
export function canBeginInShell(environment: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(environment);
  return existsSync(shell) && names.every((name) => isShellName(name) && !shellOwn.test(name));
}

/**
 * A command that the shell begins once it is told to on descriptor 3, and becomes. The shell ends by itself when
 * whoever started it is gone before that: a child that is forked when its hub is killed carries no tag yet, and
 * is found by no other hub. Before it begins, it joins the cgroups, so that nothing of it is outside of them;
 * where a limit is to hold, a command that cannot join does not begin. Then come the words of `switching`, which change
 * the account, and only after them the environment: the loader of the shell, or of `setpriv`, would do as it says.
 */
export function shellCommand(
  cgroup: MadeCgroup | undefined,
  switching: readonly string[],
  command: readonly string[],
): readonly string[] {
  const { folders = [], held = new Set() } = cgroup ?? {};
  const wait = `read -r told <&${gateDescriptor} || exit 125`;
  const join = '{ echo $$ >"$1/cgroup.procs"; } 2>/dev/null';
  const orElse = held.size === 0 ? '' : ` || { echo "[hub] cannot join $1" >&2; exit 126; }`;
  const joinAll = `while [ "$1" != -- ]; do ${join}${orElse}; shift; done; shift`;
  const script = `${wait}; ${joinAll}; exec "$@" <&${gateDescriptor} ${gateDescriptor}<&-`;
  const inner = [...switching, shell, '-s', '--', ...command];
  return [shell, '-c', script, 'sh', ...folders, '--', ...inner];
}

/** What a command that waits is told: to begin, where, and in which environment. */
export function beginning(
  environment: Readonly<Record<string, string>>,
  workingDirectory: string | undefined,
): string {
  const variables = Object.entries(environment)
    .filter(([name]) => !shellOwn.test(name))
    .map(([name, value]) => `export ${name}=${quote(value)}`);
  const enter =
    workingDirectory === undefined
      ? []
      : [
          `cd -- ${quote(workingDirectory)} || { echo "[hub] the folder of the server cannot be entered" >&2; exit 126; }`,
        ];
  // In braces: of a text that breaks off nothing is done.
  const lines = [
    '{',
    ...enter,
    ...variables,
    'unset PWD OLDPWD SHLVL',
    'exec "$@" </dev/null',
    '}',
  ];
  return `begin\n${lines.join('\n')}\n`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
