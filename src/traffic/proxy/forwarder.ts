import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { ProxyConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { ClientAddress } from '../../platform/http/request-address.ts';
import { noteReader, recordOf } from '../../platform/http/request-log.ts';
import type { FindIdentity } from '../../platform/internal-tls/internal-authority.ts';
import { withoutTokenParameter } from '../../platform/protocol/token-parameter.ts';
import { text } from '../../platform/texts/text.ts';
import { Exchange, type ExchangeHost, type ForwardedRequest, isIdempotent } from './exchange.ts';
import {
  type AnswerHead,
  createUpstreamPools,
  requestHeadOnly,
  type UpstreamOptions,
} from './http1/upstream-pool.ts';
import type { ConnectionTags, LiveConnections } from './live-connections.ts';
import { isPeriodic } from './periodic-requests.ts';
import { bodyTooLarge, discardBody, hasBody, RequestBody } from './request-body.ts';
import { type HeaderPairs, upstreamRequestHeaders } from './request-headers.ts';
import { acceptsTrailers } from './response-headers.ts';
import type { Route } from './route.ts';
import type { RouteTable } from './route-table.ts';
import { notReadyError, overloadedError, toUpstreamError } from './upstream-error.ts';

/** One request to forward, already allowed to pass. */
export interface ForwardOptions extends Omit<ConnectionTags, 'client'> {
  /** Path and query to send, from `RouteTable.match`. */
  readonly path: string;
  readonly client: Pick<ClientAddress, 'address' | 'protocol' | 'host' | 'certificate'>;
  /** Names and values in turn, such as the identity headers. */
  readonly headersToAdd?: HeaderPairs;
  /** Names and values in turn to add to the answer, such as a renewed cookie of the gateway. */
  readonly responseHeadersToAdd?: HeaderPairs;
  /** Whether `Authorization` and `?token=` held a hub token, which the upstream must not see. */
  readonly stripAuthorization?: boolean;
}

/** Answers a request that could not be forwarded. */
export type AnswerError = (req: IncomingMessage, res: ServerResponse, error: HubError) => void;

/** A GET of the hub's own. */
export interface OwnRequest {
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** Forwards HTTP requests. */
export interface Forwarder extends AsyncDisposable {
  forward(req: IncomingMessage, res: ServerResponse, options: ForwardOptions): void;
  /** Sends a request of the hub's own, and gives the head of the answer. Throws HubError when there is none. */
  ask(route: Route, request: OwnRequest): Promise<AnswerHead>;
}

/** A larger body is not kept: then a PUT under way when its application restarts is lost. */
const maxRetainedBytes = 64 * 1024;

/** Routes removed from the table lose their connections to the upstream. */
export function createForwarder(options: {
  readonly config: UpstreamOptions & Pick<ProxyConfig, 'max_body_size' | 'reconnect_timeout'>;
  readonly log: Logger;
  readonly routes: Pick<RouteTable, 'onRemove'>;
  readonly liveConnections: LiveConnections;
  readonly answerError: AnswerError;
  /** Called once for each request, when the client has its whole answer or is gone. */
  readonly onClosed: (req: IncomingMessage, res: ServerResponse, tags: ConnectionTags) => void;
  /** Resolves where a connection that was just opened may be used; what it rejects with is answered. */
  readonly verifyConnection?: (() => Promise<void>) | undefined;
  /** What upstreams with TLS are shown and checked by, in place of what holds for everybody. */
  readonly identity?: FindIdentity | undefined;
  /** Whether clients are gateways, which ask for no trailers and pass on those that their own clients read. */
  readonly isBehindGateway?: boolean;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}): Forwarder {
  const {
    config,
    log,
    routes,
    liveConnections,
    answerError,
    onClosed,
    now = () => performance.now(),
  } = options;
  const { verifyConnection: verify, identity } = options;
  const pools = createUpstreamPools({ ...config, verify, identity }, now);
  const stopListening = routes.onRemove((route) => pools.release(route));
  const host: ExchangeHost = {
    now,
    sendsTrailersUnasked: options.isBehindGateway ?? false,
    reconnectMs: config.reconnect_timeout * 1000,
    dispatch(exchange) {
      const pool = pools.of(exchange.tags.route);
      if (pool.isFull) exchange.onResponseError(overloadedError());
      else pool.dispatch(exchange.request, exchange, exchange.isRetried);
    },
    answerError,
    finished: (exchange) => liveConnections.delete(exchange),
    closed: ({ req, tags }, res) => onClosed(req, res, tags),
    failed({ req, tags, request }, error) {
      const { prefix } = tags.route;
      log.warn(
        { requestId: recordOf(req).id, route: prefix, method: request.method, err: error },
        'upstream failed',
      );
    },
  };

  /** 0 for any. The other end of a hop knows the limits of the route. */
  function maxBodyBytesOf({ isHop, limits }: Route): number {
    return isHop ? 0 : (limits?.max_body_size ?? config.max_body_size);
  }

  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    { tags, error }: { tags: ConnectionTags; error: HubError },
  ): void {
    res.once('close', () => onClosed(req, res, tags));
    answerError(req, res, error);
    discardBody(req);
  }

  return {
    forward(req, res, forwardOptions) {
      const { route, client, userName } = forwardOptions;
      noteReader(req.socket, { userName, address: client.address });
      // The client left while it was decided whether it may pass; its `close` will not come again.
      if (res.destroyed) return;
      const error = refusalOf(req, { route, maxBodyBytes: maxBodyBytesOf(route) });
      if (error !== undefined) {
        refuse(req, res, { tags: forwardOptions, error });
        return;
      }
      const request = toUpstreamRequest(req, forwardOptions);
      if (request instanceof HubError) {
        refuse(req, res, { tags: forwardOptions, error: request });
        return;
      }
      route.lastActivityMs = now();
      if (!isPeriodic(request.method, request.path)) route.lastUseMs = route.lastActivityMs;
      const { responseHeadersToAdd } = forwardOptions;
      const exchange = new Exchange({
        req,
        res,
        tags: forwardOptions,
        request,
        responseHeadersToAdd,
        host,
      });
      if (hasBody(req)) {
        request.body = new RequestBody(req, {
          limitBytes: maxBodyBytesOf(route),
          keepBytes: retainedBytesOf(req),
          onTraffic() {
            exchange.touch();
            route.lastUseMs = route.lastActivityMs;
          },
        });
      }
      liveConnections.add(exchange);
      host.dispatch(exchange);
    },

    async ask(route, { path, headers, timeoutMs }) {
      const pool = pools.of(route);
      if (pool.isFull) throw overloadedError();
      const request = { method: 'GET', path, headers: Object.entries(headers).flat(), body: null };
      try {
        return await requestHeadOnly(pool, { request, timeoutMs });
      } catch (error) {
        throw toUpstreamError(error);
      }
    },

    async [Symbol.asyncDispose]() {
      stopListening();
      pools[Symbol.dispose]();
    },
  };
}

/** How much of a body to keep until its answer begins, for the case that it has to be sent once more. */
function retainedBytesOf({ method = '', headers }: IncomingMessage): number {
  const announced = Number(headers['content-length'] ?? 0);
  return isIdempotent(method) && announced <= maxRetainedBytes ? maxRetainedBytes : 0;
}

function refusalOf(
  req: IncomingMessage,
  { route, maxBodyBytes }: { route: Route; maxBodyBytes: number },
): HubError | undefined {
  const wrongMethod = methodProblem(req.method ?? '');
  if (wrongMethod !== undefined) return wrongMethod;
  if (!route.isReady) return notReadyError();
  if (maxBodyBytes > 0 && Number(req.headers['content-length'] ?? 0) > maxBodyBytes) {
    return bodyTooLarge(maxBodyBytes);
  }
  return undefined;
}

function toUpstreamRequest(
  req: IncomingMessage,
  options: ForwardOptions,
): ForwardedRequest | HubError {
  const { route, path, client, headersToAdd, stripAuthorization = false } = options;
  let headers: string[];
  try {
    const { rawHeaders } = req;
    const { id, trace } = recordOf(req);
    headers = upstreamRequestHeaders({
      rawHeaders,
      route,
      client,
      requestId: id,
      traceHeaders: trace?.forwarding(),
      headersToAdd: [],
      stripAuthorization,
    });
  } catch (error) {
    return toUpstreamError(error);
  }
  // The other end of a hop answers the client itself.
  if (route.isHop && acceptsTrailers(req.headers)) headers.push('te', 'trailers');
  const contentLength = req.headers['content-length'];
  if (contentLength !== undefined && hasBody(req)) {
    // As a plain number: another reader might take leading zeros for something else.
    headers.push('content-length', String(Number(contentLength)));
  }
  return {
    method: req.method ?? 'GET',
    path: stripAuthorization ? withoutTokenParameter(path) : path,
    headers,
    ...(headersToAdd !== undefined && { addedHeaders: headersToAdd }),
    body: null,
  };
}

/** TRACE would show a script the headers it must not see (RFC 9110 §9.3.8). */
const refused = new Set(['TRACE', 'TRACK', 'CONNECT']);
/** Those of which Node.js reads a request. */
const readable: ReadonlySet<string> = new Set(METHODS);

/** Why a request with this method is not forwarded, by the hub or on its word. */
export function methodProblem(method: string): HubError | undefined {
  if (readable.has(method) && !refused.has(method)) return undefined;
  return new HubError('method_not_allowed', text`The method ${method} is not forwarded.`);
}
