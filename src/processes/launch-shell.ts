import { existsSync } from 'node:fs';
import type { MadeCgroup } from './cgroup.ts';

const shell = '/bin/sh';

/** Descriptor on which a command that waits is told to begin. */
const gateDescriptor = 3;
/** What it is told. */
export const beginning = 'begin\n';

/** Whether a command can be begun by the shell, which hands an environment on as it is. */
export function canBeginInShell(environment: Readonly<Record<string, string>>): boolean {
  const isShellProof = Object.keys(environment).every(
    (name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !/^(?:PWD|OLDPWD|SHLVL|_|ENV)$/.test(name),
  );
  return isShellProof && existsSync(shell);
}

/**
 * A command that the shell begins once it is told to on descriptor 3, and becomes. The shell ends by itself when
 * whoever started it is gone before that: a child that is forked when its hub is killed carries no tag yet, and
 * is found by no other hub. Before it begins, it joins the cgroups, so that nothing of it is outside of them;
 * where a limit is to hold, a command that cannot join does not begin.
 */
export function shellCommand(
  cgroup: MadeCgroup | undefined,
  command: readonly string[],
): readonly string[] {
  const { folders = [], held = new Set() } = cgroup ?? {};
  const wait = `read -r told <&${gateDescriptor} || exit 125; exec ${gateDescriptor}<&-`;
  const join = '{ echo $$ >"$1/cgroup.procs"; } 2>/dev/null';
  const orElse = held.size === 0 ? '' : ` || { echo "[hub] cannot join $1" >&2; exit 126; }`;
  const joinAll = `while [ "$1" != -- ]; do ${join}${orElse}; shift; done; shift`;
  const script = `${wait}; ${joinAll}; unset PWD OLDPWD SHLVL told; exec "$@"`;
  return [shell, '-c', script, 'sh', ...folders, '--', ...command];
}
