import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The response that Node is working on for a socket; only Node knows it. */
export function responseOn(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

/**
 * Puts a check in front of Node's own listener for connections, so that one that is refused never gets a
 * parser. `accept` returns whether Node may have the socket; one that it may not have is `accept`'s to end.
 */
export function interceptConnections(server: Server, accept: (socket: Socket) => boolean): void {
  const nodeListeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    if (!accept(socket)) return;
    for (const listener of nodeListeners) listener.call(server, socket);
  });
}
