import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

/** The response that Node is working on for a socket; only Node knows it. */
export function responseOn(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

/** Gives a message what its parser would: names and values in turn, which `headers` is made of when it is first read. */
export function setHeaders(message: IncomingMessage, headers: string[]): void {
  const parsed = message as IncomingMessage & {
    _addHeaderLines(headers: string[], count: number): void;
  };
  parsed._addHeaderLines(headers, headers.length);
}

/**
 * Ends a request without a body as Node does under `optimizeEmptyRequests`: there is nothing to set up and drain. The
 * stream of HTTP/2 that it came by can still be written, and then closes without being read.
 */
export function endEmpty(message: IncomingMessage, stream: Duplex): void {
  (message as IncomingMessage & { _dumpAndCloseReadable(): void })._dumpAndCloseReadable();
  const { _readableState: state } = stream as Duplex & {
    _readableState: { ended: boolean; endEmitted: boolean };
  };
  state.ended = true;
  state.endEmitted = true;
}

/** The connection under one with TLS. */
export function connectionUnder(secure: TLSSocket): Socket | undefined {
  return (secure as TLSSocket & { _parent?: Socket | null })._parent ?? undefined;
}

function connectionListenersOf(server: Server): readonly ((socket: Socket) => void)[] {
  return server.listeners('connection') as ((socket: Socket) => void)[];
}

/**
 * Stands in front of Node's own listener for connections, so that one that is refused never gets a parser: the listener
 * gets what is given to the function that this returns.
 */
export function interceptConnections(
  server: Server,
  accept: (socket: Socket) => void,
): (socket: Socket) => void {
  const nodeListeners = connectionListenersOf(server);
  server.removeAllListeners('connection');
  server.on('connection', accept);
  return (socket) => {
    for (const listener of nodeListeners) listener.call(server, socket);
  };
}

/** Node keeps no more headers of a request, though its parser reads them all. */
const maxHeaders = 1_000;

/** Whether a request may have headers that Node has not kept. */
export function mayLackHeaders({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length >= 2 * maxHeaders;
}

/** Names of which the parser reads `upgrade` as a wish of the connection. */
const connectionNames = new Set(['connection', 'proxy-connection']);

/**
 * Prepares a server for reading requests again as plain ones: with their `Upgrade` header, but without `upgrade` in
 * `Connection`, so that it means nothing (RFC 9110 §7.8). To be called before anything else listens to the server. What
 * it returns takes what the `upgrade` event gave, and gives the connection back to Node, which reads the request and
 * then what follows it.
 *
 * Where `shouldUpgradeCallback` refuses an upgrade, the parser stops behind the request all the same: Node drops the rest
 * of what came with it, reports no error in its body, and reads on in the middle of what follows (`HPE_PAUSED_UPGRADE`
 * of llhttp).
 */
export function prepareReadingAgain(
  server: Server,
): (req: IncomingMessage, socket: Socket, head: Buffer) => void {
  const nodeListeners = connectionListenersOf(server);
  return ({ method, url, httpVersion, rawHeaders }, socket, head) => {
    // Never longer than what was sent, so that it stays within the limit of the parser.
    let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      const name = rawHeaders[index] ?? '';
      const value = rawHeaders[index + 1] ?? '';
      const isOfConnection = connectionNames.has(name.toLowerCase());
      text += `${name}:${isOfConnection ? withoutUpgrade(value) : value}\r\n`;
    }
    socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]));
    for (const listener of nodeListeners) listener.call(server, socket);
  };
}

/** Nothing may be left that could be read as `upgrade`: the request would come back for ever. */
function withoutUpgrade(connection: string): string {
  const options = connection.split(',');
  return options.filter((option) => !/upgrade/i.test(option)).join(',');
}

/**
 * Calls back once all requests that came on a connection before one to upgrade have their answers; never when the
 * connection closes before. Node reports an upgrade at once, and serves the answers under way no longer.
 */
export function afterEarlierAnswers(socket: Socket, then: () => void): void {
  if (responseOn(socket) === undefined) {
    then();
    return;
  }
  const passDrain = () => responseOn(socket)?.emit('drain');
  const end = () => void socket.end();
  socket.on('drain', passDrain).on('end', end);
  function look(): void {
    const earlier = responseOn(socket);
    if (socket.destroyed) return;
    if (earlier !== undefined) {
      earlier.once('close', look);
      return;
    }
    socket.off('drain', passDrain).off('end', end);
    then();
  }
  look();
}

type ServerSocket = Socket & { _paused?: boolean; parser?: { resume(): void } | null };

/**
 * Reads nothing more from the connection of a client, not even when the stream of a request asks for more, as it
 * does after each piece that is taken from it. What has been read already still arrives.
 */
export function stopReading(socket: ServerSocket): void {
  if (socket._paused !== true) socket.on('drain', keepStopped);
  socket._paused = true;
  socket.pause();
}

/** Undoes `stopReading`. */
export function startReading(socket: ServerSocket): void {
  socket.off('drain', keepStopped);
  // Node pauses the parser of a connection with the mark once it has read a piece; what came next would be an error.
  if (socket._paused === true) socket.parser?.resume();
  socket._paused = false;
  socket.resume();
}

/** Node takes the mark for its own, and off when the client has taken what was sent. */
function keepStopped(this: ServerSocket): void {
  this._paused = true;
  this.pause();
}
