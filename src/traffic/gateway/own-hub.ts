import { geteuid } from 'node:process';
import { isOnThisMachine, listenersFor } from '../../spawning/processes/port-listener.ts';

/**
 * Rejects unless root, or the account of this program, holds the port of a hub of this machine. While the hub is away
 * any program can take the port, and would be told the token of a gateway and what visitors send. Its error is that
 * of a port which takes no connections, for which the hub is waited for.
 */
export async function requireOwnHub(hubUrl: URL): Promise<void> {
  const { href } = hubUrl;
  if (!isOnThisMachine(href)) return;
  const listeners = await listenersFor(href);
  // A port that nobody holds now may have been taken by the time of a connection.
  if (listeners?.length === 0) throw away('nothing listens at the address of the hub');
  const other = listeners?.find(({ userId }) => userId !== 0 && userId !== geteuid?.());
  if (other === undefined) return;
  throw away(`a program of user id ${other.userId} has the address of the hub`);
}

function away(message: string): Error {
  return Object.assign(new Error(message), { code: 'ECONNREFUSED' });
}
