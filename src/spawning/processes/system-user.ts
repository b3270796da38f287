import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { geteuid } from 'node:process';
import { promisify } from 'node:util';
import { type Text, text } from '../../platform/texts/text.ts';

/** An account of the machine, as far as running a program under it needs. */
export interface SystemUser {
  readonly name: string;
  readonly userId: number;
  /** Primary group. */
  readonly groupId: number;
  /** Every group, the primary one included. */
  readonly groupIds: readonly number[];
  readonly home: string;
  readonly shell: string;
}

const execFileAsync = promisify(execFile);
const accountName = /^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$/;

/** Numbers of capabilities(7). */
const capabilities = { chown: 0n, ignoreModes: 1n, setGroupIds: 6n, setUserIds: 7n };

/**
 * Whether the hub may run programs under other accounts: as root, or with the capabilities for that. Then it may do
 * more with a path than the accounts that can move it.
 */
export function maySwitchAccounts(): boolean {
  return hasCapability('setUserIds') && hasCapability('setGroupIds');
}

/** Whether the hub has a capability; taken from its account where the system does not tell. */
export function hasCapability(name: keyof typeof capabilities): boolean {
  effective ??= effectiveCapabilities() ?? (runsAsRoot() ? -1n : 0n);
  return ((effective >> capabilities[name]) & 1n) === 1n;
}

let effective: bigint | undefined;

function effectiveCapabilities(): bigint | undefined {
  try {
    const status = readFileSync('/proc/self/status', 'latin1');
    const [, digits] = /^CapEff:\s*([0-9a-f]+)/m.exec(status) ?? [];
    return digits === undefined ? undefined : BigInt(`0x${digits}`);
  } catch {
    return undefined;
  }
}

export function runsAsRoot(): boolean {
  return geteuid?.() === 0;
}

/**
 * Finds an account by name, also one of a directory service (through `getent` and `id`); undefined
 * when there is none.
 */
export async function findSystemUser(name: string): Promise<SystemUser | undefined> {
  if (!accountName.test(name)) return undefined;
  const line = await passwdLine(name);
  const [entryName, , userId, groupId, , home = '/', shell = '/bin/sh'] = line?.split(':') ?? [];
  // getent also finds an account by its number; `user` is documented as a name.
  if (entryName !== name) return undefined;
  return {
    name,
    userId: Number(userId),
    groupId: Number(groupId),
    groupIds: await groupIdsOf(name, Number(groupId)),
    home,
    shell: shell === '' ? '/bin/sh' : shell,
  };
}

/** The id of an account; undefined when there is none. */
export async function findUserId(name: string): Promise<number | undefined> {
  if (!accountName.test(name)) return undefined;
  const [entryName, , userId] = (await passwdLine(name))?.split(':') ?? [];
  return entryName === name ? Number(userId) : undefined;
}

/**
 * Says why users' servers may not run under an account: never as root, nor as one of the system's own
 * (an id below `UID_MIN` of login.defs(5)) that the operator has not named. Undefined when they may.
 */
export async function serverAccountProblem(
  { name, userId }: Pick<SystemUser, 'name' | 'userId'>,
  allowed: readonly (string | number)[],
): Promise<Text | undefined> {
  if (userId === 0) {
    return text`No server runs under the account "${name}": it administers this machine.`;
  }
  const min = await minUserId();
  if (userId >= min || allowed.includes(name) || allowed.includes(userId)) return undefined;
  return text`No server runs under the account "${name}": its id ${String(userId)} is below UID_MIN (${String(min)}), so it is one of the system's own. The operator may name it in Spawner.allowed_system_users.`;
}

async function minUserId(): Promise<number> {
  const text = await readFile('/etc/login.defs', 'latin1').catch(() => '');
  const value = Number(/^[ \t]*UID_MIN[ \t]+(\w+)/m.exec(text)?.[1] ?? Number.NaN);
  return Number.isInteger(value) && value > 0 ? value : usualMinUserId;
}

/** UID_MIN where login.defs does not say. */
const usualMinUserId = 1_000;

/**
 * Finds the `setpriv` of util-linux, which can set supplementary groups; the one of BusyBox cannot.
 */
export async function findSetpriv(): Promise<string | undefined> {
  for (const file of ['/usr/bin/setpriv', '/bin/setpriv']) {
    const target = await realpath(file).catch(() => undefined);
    if (target !== undefined && !target.endsWith('busybox')) return file;
  }
  return undefined;
}

async function passwdLine(name: string): Promise<string | undefined> {
  try {
    const { stdout } = await execFileAsync('getent', ['passwd', name]);
    return stdout.trim();
  } catch {
    // No such account, or no getent on this machine: the file knows the local ones.
    const text = await readFile('/etc/passwd', 'utf8').catch(() => '');
    return text.split('\n').find((line) => line.startsWith(`${name}:`));
  }
}

async function groupIdsOf(name: string, primary: number): Promise<readonly number[]> {
  try {
    const { stdout } = await execFileAsync('id', ['-G', name]);
    return [...new Set([primary, ...stdout.trim().split(/\s+/).map(Number)])];
  } catch {
    return [primary];
  }
}
