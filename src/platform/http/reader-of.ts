import type { Socket } from 'node:net';
import { networkOf } from './connection-limits.ts';

const readerKey = Symbol('reader');
type NotedSocket = Socket & { [readerKey]?: string };

/** Notes who reads what is sent on a connection from now on: a user by name or, as long as none is known, an address. */
export function noteReader(
  socket: NotedSocket,
  { userName, address = '' }: { readonly userName?: string | undefined; readonly address?: string },
): void {
  // No name of a user begins with a space.
  socket[readerKey] = userName ?? ` ${address}`;
}

/** Who reads what is sent on a connection; two of them are equal if they are one user or in one network. */
export function readerOf(socket: NotedSocket): string {
  const noted = socket[readerKey] ?? ` ${socket.remoteAddress ?? ''}`;
  return noted.startsWith(' ') ? ` ${networkOf(noted.slice(1))}` : noted;
}
