import {
  type Agent,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { HubError } from '../errors.ts';
import type { ClientAddressReader } from '../http/client-address.ts';
import { recordOf } from '../http/request-record.ts';
import { toHeaderObject, upstreamRequestHeaders } from '../proxy/request-headers.ts';
import { clientResponseHeaders } from '../proxy/response-headers.ts';
import type { Route } from '../proxy/route.ts';

/** What is sent on: already allowed, its path checked. */
export interface AppRequest {
  /** Path and query for the app. */
  readonly path: string;
  /** Names and values in turn. */
  readonly identity: readonly string[];
  /** Whether the request's own credential was the hub's, which the app must not see. */
  readonly stripAuthorization: boolean;
}

/** Sends requests and WebSocket connections on to the app. */
export interface AppForwarder extends Disposable {
  forward(
    incoming: IncomingMessage,
    response: ServerResponse,
    appRequest: AppRequest,
    onFailure: (error: HubError) => void,
  ): void;
  forwardUpgrade(
    incoming: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    appRequest: AppRequest,
    onFailure: (error: HubError) => void,
  ): void;
}

/** The headers that are forwarded are those that the gateway forwards. */
export function createAppForwarder(options: {
  readonly route: Route;
  /** What makes connections to the app; `forUpgrades` those that become WebSockets. */
  readonly agents: { readonly forRequests: Agent; readonly forUpgrades: Agent };
  readonly readClient: ClientAddressReader;
  /** Corrects a Location of the app, which may not know its public path. */
  readonly publicLocation: (location: string) => string;
  readonly onTraffic: () => void;
}): AppForwarder {
  const { route, agents, readClient, publicLocation, onTraffic } = options;
  const { hostname, port, socketPath } = route.upstream;

  function requestOptions(incoming: IncomingMessage, appRequest: AppRequest) {
    const headers: OutgoingHttpHeaders = toHeaderObject(
      upstreamRequestHeaders({
        rawHeaders: incoming.rawHeaders,
        route,
        client: readClient(incoming),
        requestId: recordOf(incoming).id,
        headersToAdd: appRequest.identity,
        stripAuthorization: appRequest.stripAuthorization,
      }),
    );
    return {
      ...(socketPath === undefined ? { host: hostname, port } : { socketPath }),
      method: incoming.method,
      path: appRequest.path,
      headers,
      agent: agents.forRequests,
    };
  }

  function responseHeaders(response: IncomingMessage, incoming: IncomingMessage): string[] {
    const pairs = clientResponseHeaders(response.headersDistinct, route, [
      readClient(incoming).host,
      incoming.headers.host,
    ]);
    return pairs.map((item, index) =>
      index % 2 === 1 && pairs[index - 1]?.toLowerCase() === 'location'
        ? publicLocation(item)
        : item,
    );
  }

  function relay(answer: IncomingMessage, response: ServerResponse): void {
    onTraffic();
    if (response.destroyed) {
      answer.destroy();
      return;
    }
    response.writeHead(answer.statusCode ?? 502, responseHeaders(answer, response.req));
    // Sent at once: an event stream may begin long before its first event.
    response.flushHeaders();
    answer.on('data', onTraffic);
    // A failure on either side has destroyed both; there is no one left to tell.
    pipeline(answer, response, () => undefined);
  }

  return {
    forward(incoming, response, appRequest, onFailure) {
      const framing = framingOf(incoming);
      const hasBody = Object.keys(framing).length > 0;
      const { headers, ...rest } = requestOptions(incoming, appRequest);

      function send(isRetry: boolean): void {
        const outgoing = request({ ...rest, headers: { ...headers, ...framing } });
        const abandon = () => outgoing.destroy();
        response.once('close', abandon);
        outgoing.once('response', (answer) => relay(answer, response));
        outgoing.on('error', (cause) => {
          response.off('close', abandon);
          if (response.headersSent) response.destroy();
          else if (response.destroyed) return;
          // An idle connection may be closed by the app just when it is used again.
          else if (outgoing.reusedSocket && !hasBody && !isRetry) send(true);
          else onFailure(notAnswering(cause));
        });
        if (hasBody) incoming.pipe(outgoing);
        else outgoing.end();
      }
      send(false);
    },

    forwardUpgrade(incoming, socket, head, appRequest, onFailure) {
      const { headers, ...rest } = requestOptions(incoming, appRequest);
      const outgoing = request({
        ...rest,
        agent: agents.forUpgrades,
        headers: { ...headers, connection: 'Upgrade', upgrade: 'websocket' },
      });
      const abandon = () => outgoing.destroy();
      socket.once('close', abandon);
      socket.on('error', abandon);
      outgoing.on('error', (cause) => {
        if (!socket.destroyed) onFailure(notAnswering(cause));
      });
      outgoing.once('response', (answer) => {
        writeHead(socket, answer, [...responseHeaders(answer, incoming), 'connection', 'close']);
        pipeline(answer, socket, () => undefined);
      });
      outgoing.once('upgrade', (answer, appSocket, appHead) => {
        socket.off('close', abandon);
        const upgrade = ['connection', 'Upgrade', 'upgrade', 'websocket'];
        writeHead(socket, answer, [...responseHeaders(answer, incoming), ...upgrade]);
        join(socket as Socket, head, appSocket as Socket, appHead);
      });
      outgoing.end();
    },

    [Symbol.dispose]() {
      agents.forRequests.destroy();
      agents.forUpgrades.destroy();
    },
  };

  /** Lets bytes flow both ways until either side closes. */
  function join(socket: Socket, head: Buffer, appSocket: Socket, appHead: Buffer): void {
    const end = () => {
      socket.destroy();
      appSocket.destroy();
    };
    for (const side of [socket, appSocket]) {
      side.setNoDelay(true);
      side.setTimeout(0);
      side.on('data', onTraffic);
      side.on('error', end);
    }
    socket.write(appHead);
    appSocket.write(head);
    pipeline(socket, appSocket, end);
    pipeline(appSocket, socket, end);
  }
}

/**
 * How the body is framed for the app (RFC 9112 §6). Always said in so many words: of some methods
 * Node would send a body without a frame, and the app would read it as the next request.
 */
function framingOf(incoming: IncomingMessage): Record<string, string> {
  if (incoming.headers['transfer-encoding'] !== undefined)
    return { 'transfer-encoding': 'chunked' };
  const length = incoming.headers['content-length'];
  return length === undefined || length === '0' ? {} : { 'content-length': length };
}

function writeHead(socket: Duplex, answer: IncomingMessage, pairs: readonly string[]): void {
  const status = answer.statusCode ?? 502;
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    head += `${pairs[index]}: ${pairs[index + 1]}\r\n`;
  }
  socket.write(`${head}\r\n`, 'latin1');
}

function notAnswering(cause: Error): HubError {
  return new HubError('unavailable', 'The app does not answer.', {
    cause,
    hint: 'It may be busy or starting again. Try again in a moment.',
    retryAfterSeconds: 2,
  });
}
