import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { geteuid } from 'node:process';
import { promisify } from 'node:util';

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

/** Whether the hub runs as root, and so may run programs as other users. */
export function runsAsRoot(): boolean {
  return geteuid?.() === 0;
}

/**
 * Finds an account by name, also one of a directory service (through `getent` and `id`); undefined
 * when there is none.
 */
export async function findSystemUser(name: string): Promise<SystemUser | undefined> {
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$/.test(name)) return undefined;
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
