import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { InstanceAddress } from '../../cluster/instances/channel-caller.ts';
import type { HopProof } from '../../cluster/instances/hop-proof.ts';
import type { ProxyConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { ErrorAnswers } from '../../platform/http/error-answers.ts';
import { type ClientAddressReader, isFromInstance } from '../../platform/http/request-address.ts';
import type { FindIdentity } from '../../platform/internal-tls/internal-authority.ts';
import { text } from '../../platform/texts/text.ts';
import { createForwarder } from '../proxy/forwarder.ts';
import type { LiveConnections } from '../proxy/live-connections.ts';
import { hopHeader } from '../proxy/response-headers.ts';
import { createRoute, type Route } from '../proxy/route.ts';
import { createWebSocketForwarder } from '../proxy/websocket-forwarder.ts';

/** A request whose server or service only another instance of the hub reaches. */
export interface HopOptions {
  /** Id of that instance. */
  readonly via: string;
  /** Path and query. */
  readonly path: string;
  /** Milliseconds the answer may take to begin; what holds for all routes when left out. */
  readonly upstreamTimeoutMs?: number | undefined;
}

/** Passes requests on to other instances, which guard, count and log them. */
export interface HopForwarder extends AsyncDisposable {
  forward(req: IncomingMessage, res: ServerResponse, options: HopOptions): void;
  forwardUpgrade(req: IncomingMessage, socket: Socket, head: Buffer, options: HopOptions): void;
}

/** How much longer than its upstream the other instance may take, so that its answer is the one that counts. */
const patienceMs = 5_000;
const maxRoutes = 1_000;

export function createHopForwarder(deps: {
  readonly config: ProxyConfig;
  readonly log: Logger;
  readonly proof: HopProof;
  readonly identity: FindIdentity;
  readonly findInstance: (id: string) => InstanceAddress | undefined;
  readonly clientAddress: ClientAddressReader;
  readonly liveConnections: LiveConnections;
  readonly answers: ErrorAnswers;
  /** Told of requests that this instance answers itself, because the other one does not. */
  readonly noteRefused: (req: IncomingMessage, res: ServerResponse) => void;
}): HopForwarder {
  const { config, log, proof, answers, liveConnections, identity } = deps;
  /** One for each address and time limit, so that all requests to an instance share its connections. */
  const routes = new Map<string, Route>();
  const listeners = new Set<(route: Route, replacement: Route | undefined) => void>();
  const options = { config, log, liveConnections, identity };
  const forwarder = createForwarder({
    ...options,
    routes: {
      onRemove(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    // Logged and counted where they were passed on to.
    onClosed: () => {},
    answerError(req, res, error) {
      deps.noteRefused(req, res);
      answers.respond(req, res, withInstance(error), { isExpected: true });
    },
  });
  const webSockets = createWebSocketForwarder(options);

  function routeTo(url: string, upstreamTimeoutMs: number): Route {
    const key = `${upstreamTimeoutMs} ${url}`;
    const known = routes.get(key);
    if (known !== undefined) return known;
    const [[oldest, former] = []] = routes;
    if (routes.size >= maxRoutes && oldest !== undefined && former !== undefined) {
      routes.delete(oldest);
      for (const listener of listeners) listener(former, undefined);
    }
    const owner = { kind: 'extra' } as const;
    const definition = { prefix: '/', target: url, access: 'public', owner } as const;
    const route = createRoute({ ...definition, upstreamTimeoutMs, isHop: true }, performance.now());
    routes.set(key, route);
    return route;
  }

  /** What the forwarders take; throws `unavailable` where there is no way. */
  function prepare(req: IncomingMessage, { via, path, upstreamTimeoutMs }: HopOptions) {
    if (isFromInstance(req)) {
      throw new HubError('unavailable', text`This has just moved to another instance of the hub.`, {
        retryAfterSeconds: 1,
      });
    }
    const instance = deps.findInstance(via);
    if (instance?.url === undefined) throw unreachable();
    const limitMs = upstreamTimeoutMs ?? config.upstream_timeout * 1000;
    const client = deps.clientAddress(req);
    const request = { to: via, method: req.method ?? 'GET', target: path };
    return {
      route: routeTo(instance.url, limitMs === 0 ? 0 : limitMs + patienceMs),
      path,
      client,
      headersToAdd: [hopHeader, proof.make(request, client)],
    };
  }

  return {
    forward(req, res, hop) {
      try {
        forwarder.forward(req, res, prepare(req, hop));
      } catch (thrown) {
        deps.noteRefused(req, res);
        answers.respond(req, res, thrown, { isExpected: true });
      }
    },

    forwardUpgrade(req, socket, head, hop) {
      try {
        webSockets.forward(req, socket, head, prepare(req, hop));
      } catch (thrown) {
        answers.respondOnSocket(req, socket, thrown);
      }
    },

    async [Symbol.asyncDispose]() {
      await webSockets[Symbol.asyncDispose]();
      await forwarder[Symbol.asyncDispose]();
    },
  };
}

/** What kept the other instance from answering, in words for the visitor. */
function withInstance(error: HubError): HubError {
  return error.code === 'unavailable' || error.code === 'upstream_failed'
    ? unreachable(error)
    : error;
}

function unreachable(cause?: HubError): HubError {
  return new HubError(
    'unavailable',
    text`The instance of the hub on which this runs cannot be reached.`,
    { hint: text`Try again in a moment.`, retryAfterSeconds: 5, cause },
  );
}
