import { readFile } from 'node:fs/promises';
import { platform } from 'node:os';

/**
 * Finds the accounts whose programs listen on a TCP port of this machine, on whatever address; empty
 * when nobody does. Undefined where the system does not tell (anything but Linux).
 */
export async function findListenerUserIds(port: number): Promise<readonly number[] | undefined> {
  if (platform() !== 'linux') return undefined;
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(readTable));
  return [...new Set(tables.flatMap((table) => listenersIn(table, port)))];
}

async function readTable(file: string): Promise<string> {
  // A machine without IPv6 has no tcp6.
  return readFile(file, 'latin1').catch(() => '');
}

const listenState = '0A';

function listenersIn(table: string, port: number): number[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table.split('\n').flatMap((line) => {
    const [, local, , state, , , , userId] = line.trim().split(/\s+/);
    return local?.endsWith(suffix) && state === listenState ? [Number(userId)] : [];
  });
}
