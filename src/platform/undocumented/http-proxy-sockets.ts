import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Prepares a socket that http-proxy-3 is about to pipe and listen to; what it returns takes everything off
 * again that came later. The package's closures hold on to both requests with all their headers for as long
 * as a WebSocket is open, three times the memory of the two sockets.
 */
export function detachableSocket(socket: Socket): () => void {
  // The package keeps a set of the ids of open sockets, and forgets one in a listener that is taken off.
  Object.assign(socket, { id: 'tunnel' });
  const events = ['close', 'end', 'error'] as const;
  const former = new Set(events.flatMap((event) => socket.rawListeners(event)));
  return () => {
    socket.unpipe();
    for (const event of events) {
      for (const listener of socket.rawListeners(event)) {
        if (!former.has(listener)) socket.off(event, listener as () => void);
      }
    }
  };
}

/**
 * Takes the plain answer to a handshake from http-proxy-3, which would send each chunk of it in four pieces, without a
 * bound. To be called before the package listens to the request.
 */
export function takeResponse(
  request: ClientRequest,
  listener: (response: IncomingMessage) => void,
): void {
  const emit = request.emit.bind(request);
  request.emit = (event: string | symbol, ...args: unknown[]) => {
    if (event !== 'response') return emit(event, ...args);
    listener(args[0] as IncomingMessage);
    return true;
  };
}
