import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { HubError } from '../platform/errors.ts';
import type { ClientAddressReader } from '../platform/http/request-address.ts';
import { type AnswerError, createForwarder } from '../traffic/proxy/forwarder.ts';
import { createLiveConnections } from '../traffic/proxy/live-connections.ts';
import type { Route } from '../traffic/proxy/route.ts';
import { createWebSocketForwarder } from '../traffic/proxy/websocket-forwarder.ts';
import type { OwnConnections } from './own-connections.ts';

/** What is sent on: already allowed, its path checked. */
export interface AppRequest {
  /** Path and query for the app. */
  readonly path: string;
  /** Names and values in turn. */
  readonly headersToAdd: readonly string[];
  /** Whether the request's own credential was the hub's, which the app must not see. */
  readonly stripAuthorization: boolean;
}

/** Sends requests and WebSocket connections on to the app. */
export interface AppForwarder extends AsyncDisposable {
  forward(req: IncomingMessage, res: ServerResponse, appRequest: AppRequest): void;
  forwardUpgrade(req: IncomingMessage, socket: Socket, head: Buffer, appRequest: AppRequest): void;
  /** When a visitor last sent something that counts as use, on the monotonic clock; -Infinity before the first. */
  lastTrafficMs(): number;
}

/** In seconds and bytes; 0 is no limit. The gateway before it has limits for all, and an app may think as long as it likes. */
const limits = {
  connect_timeout: 10,
  upstream_timeout: 0,
  body_timeout: 0,
  upstream_idle_timeout: 55,
  max_upstream_connections: 1_000,
  reconnect_timeout: 0,
  max_body_size: 0,
  max_websockets_per_user: 0,
  websocket_idle_timeout: 0,
} as const;

/** The forwarders of the gateway, with one route. */
export function createAppForwarder(options: {
  readonly route: Route;
  readonly connections: OwnConnections;
  readonly readClient: ClientAddressReader;
  readonly answerError: AnswerError;
  readonly log: Logger;
}): AppForwarder {
  const { route, connections, readClient, answerError, log } = options;
  const liveConnections = createLiveConnections();
  const shared = { config: limits, log, liveConnections };
  const forwarder = createForwarder({
    ...shared,
    routes: { onRemove: () => () => true },
    verifyConnection: connections.verify,
    isBehindGateway: true,
    answerError: (req, res, error) =>
      answerError(req, res, error.code === 'unavailable' ? notAnswering(error) : error),
    onClosed: () => {},
  });
  const webSockets = createWebSocketForwarder({ ...shared, httpAgent: connections.agent });
  const optionsFor = (req: IncomingMessage, appRequest: AppRequest) => ({
    ...appRequest,
    route,
    client: readClient(req),
  });

  return {
    forward: (req, res, appRequest) => forwarder.forward(req, res, optionsFor(req, appRequest)),
    forwardUpgrade: (req, socket, head, appRequest) =>
      webSockets.forward(req, socket, head, optionsFor(req, appRequest)),
    lastTrafficMs() {
      webSockets.recordTraffic();
      return route.lastUseMs;
    },
    async [Symbol.asyncDispose]() {
      await webSockets[Symbol.asyncDispose]();
      await forwarder[Symbol.asyncDispose]();
    },
  };
}

/** What a visitor is told while the app takes no connection. */
function notAnswering(cause: HubError): HubError {
  return new HubError('unavailable', 'The app does not answer.', {
    cause,
    hint: 'It may be busy or starting again. Try again in a moment.',
    retryAfterSeconds: 2,
  });
}
