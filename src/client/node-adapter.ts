import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { answerOnSocket, writeAnswer } from '../platform/http/answer.ts';
import { prefersHtml } from '../platform/http/content-negotiation.ts';
import { type Allowed, type Answered, toAnswer } from './decision.ts';
import type { HubAuth } from './hub-auth.ts';

/** Told of every failure that is not the visitor's: the hub's, the setup's, the handler's. */
export type ErrorListener = (thrown: unknown) => void;

/** Options of the adapters. */
export interface AdapterOptions {
  /** Writes to standard error unless given. */
  readonly onError?: ErrorListener;
}

/** Serves a request that was allowed. */
export type AllowedHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  access: Allowed,
) => void | Promise<void>;

/** Makes a listener for `http.createServer` that calls `handler` for allowed requests only. */
export function nodeListener(
  hubAuth: HubAuth,
  handler: AllowedHandler,
  options: AdapterOptions = {},
): RequestListener {
  const { onError = console.error } = options;
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const decision = await hubAuth.authenticate(request);
    if (decision.kind === 'allowed') return handler(request, response, decision);
    reportFailure(decision, onError);
    writeAnswer(request, response, toAnswer(decision, prefersHtml(request.headers)));
  }
  return (request, response) => {
    serve(request, response).catch((thrown: unknown) => {
      onError(thrown);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    });
  };
}

/** Takes over the socket of a WebSocket handshake that was allowed. */
export type AllowedUpgradeHandler = (
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  access: Allowed,
) => void;

/** Makes a listener for a server's `upgrade` event that calls `handler` for allowed handshakes only. */
export function nodeUpgradeListener(
  hubAuth: HubAuth,
  handler: AllowedUpgradeHandler,
  options: AdapterOptions = {},
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const { onError = console.error } = options;
  async function serve(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const decision = await hubAuth.authenticate(request);
    if (socket.destroyed) return;
    if (decision.kind === 'allowed') {
      socket.off('error', abandon);
      return handler(request, socket, head, decision);
    }
    reportFailure(decision, onError);
    answerOnSocket(socket, toAnswer(decision, false));
  }
  /** A visitor who leaves while the hub is asked must not end the process. */
  function abandon(this: Duplex): void {
    this.destroy();
  }
  return (request, socket, head) => {
    socket.on('error', abandon);
    serve(request, socket, head).catch((thrown: unknown) => {
      onError(thrown);
      socket.destroy();
    });
  };
}

/** Tells the listener about a denial that is not the visitor's doing. */
export function reportFailure(decision: Answered, onError: ErrorListener): void {
  if (decision.kind === 'denied' && decision.status >= 500) onError(decision.error);
}
