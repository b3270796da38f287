import { spawn } from 'node:child_process';
import { TextError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { findSetpriv, maySwitchAccounts, runsAsRoot, type SystemUser } from './system-user.ts';

/** The ids by which a program runs. */
export type Account = Pick<SystemUser, 'userId' | 'groupId'> &
  Partial<Pick<SystemUser, 'groupIds'>>;

/** How a command gets to run under an account. */
export interface AccountSwitch {
  /** Words before the command. */
  readonly words: readonly string[];
  /** What `spawn` is to do in their place, where there is no `setpriv`. */
  readonly ids: { readonly uid?: number; readonly gid?: number };
}

const noSwitch: AccountSwitch = { words: [], ids: {} };

/**
 * The switch to an account, for which no variable of that account may be in the environment yet: the loader reads some
 * of them while the program still is the hub's. Undefined for the account of the hub, whose programs lose its
 * capabilities. Without `setpriv` it is `spawn` that switches, which drops every group but the first.
 */
export async function switchTo(account: Account | undefined): Promise<AccountSwitch> {
  if (!maySwitchAccounts() || (account === undefined && runsAsRoot())) return noSwitch;
  const setpriv = await findSetpriv();
  if (setpriv === undefined) {
    if (!runsAsRoot()) throw new TextError(text`setpriv (util-linux) is missing`);
    if (account === undefined) return noSwitch;
    return { words: [], ids: { uid: account.userId, gid: account.groupId } };
  }
  // Those that root has go with its account; what a hub of another account was given does not.
  const plain = ['--inh-caps=-all', '--ambient-caps=-all', '--'];
  if (account === undefined) return { words: [setpriv, ...plain], ids: {} };
  const { userId, groupId, groupIds } = account;
  const groups = groupIds === undefined ? '--clear-groups' : `--groups=${groupIds.join()}`;
  return {
    words: [setpriv, `--reuid=${userId}`, `--regid=${groupId}`, groups, ...plain],
    ids: {},
  };
}

const timeoutMs = 30_000;
const maxErrorCharacters = 500;

/**
 * Runs a command under an account, for what the hub itself must not do in a folder of that account. Its environment is
 * that of no one. Rejects with what the command said where it fails, or does not end in time.
 */
export async function runAs(account: Account, command: readonly string[]): Promise<void> {
  const { words, ids } = await switchTo(account);
  const [program = '', ...rest] = [...words, ...command];
  const child = spawn(program, rest, {
    ...ids,
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    stdio: ['ignore', 'ignore', 'pipe'],
    signal: AbortSignal.timeout(timeoutMs),
    killSignal: 'SIGKILL',
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    if (said.length < maxErrorCharacters) said += String(chunk);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(said.trim().slice(0, maxErrorCharacters) || `code ${code}`);
}
