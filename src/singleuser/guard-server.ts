import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import {
  type Allowed,
  type Answered,
  type Decision,
  type Denied,
  deny,
  toAnswer,
} from '../client/decision.ts';
import { sessionIdOf } from '../client/hub-auth.ts';
import type { HubOAuth } from '../client/hub-oauth.ts';
import { createPeriodic } from '../platform/concurrency/periodic.ts';
import { HubError } from '../platform/errors.ts';
import { answerOnSocket, writeAnswer } from '../platform/http/answer.ts';
import { budgetConnections } from '../platform/http/connection-budget.ts';
import { createConnectionLimits } from '../platform/http/connection-limits.ts';
import { prefersHtml } from '../platform/http/content-negotiation.ts';
import {
  canonicalPath,
  createTrustedPeer,
  withoutPrefix,
} from '../platform/http/request-address.ts';
import { createHubServer, type HubServer } from '../platform/http/server/http-server.ts';
import {
  type IdentityHeaderNames,
  identityHeaders,
} from '../platform/protocol/identity-headers.ts';
import { openFilesLimit } from '../spawning/processes/open-files.ts';
import type { AppForwarder, AppRequest } from './app-forwarder.ts';

/** Browsers and programs that are rechecked more often than this would keep the hub busy. */
const minRecheckMs = 1_000;

/**
 * In seconds and bytes; 0 is no limit. What a stranger can do who reaches the port. How fast bodies and answers go is up
 * to the gateway before it, whose limits are configured.
 */
const limits = {
  // More than the gateway takes by default, and what it adds.
  max_header_size: 64 * 1024,
  headers_timeout: 30,
  request_timeout: 0,
  idle_timeout: 75,
  client_body_timeout: 0,
  client_read_timeout: 0,
  max_unread_size: 64 * 1024 * 1024,
} as const;
/** That of the gateway does not count, where it is on this machine. */
const maxConnectionsPerAddress = 5_000;

/** Peers on this machine, such as the hub's gateway. */
export const localPeers = ['127.0.0.0/8', '::1'];

/** The HTTP server in front of the app: it checks who asks, then forwards. */
export function createGuardServer(options: {
  readonly hubAuth: HubOAuth;
  /** Undefined until the app answers. */
  readonly forwarder: () => AppForwarder | undefined;
  /** Whether the app does not know its prefix and gets paths without it. */
  readonly stripsPrefix: boolean;
  readonly identityHeaders: IdentityHeaderNames;
  readonly onTraffic: () => void;
  readonly log: Logger;
}): HubServer {
  const { hubAuth, stripsPrefix, onTraffic, log } = options;
  const prefix = hubAuth.service_prefix;

  /** Why a request is refused before its user is known. */
  function obstacle(request: IncomingMessage): Denied | undefined {
    const path = canonicalPath(request.url ?? '');
    if (path !== undefined && !path.pathname.startsWith(prefix)) {
      return deny(new HubError('not_found', `This server is at ${prefix}`));
    }
    if (path === undefined || pathForApp(path.target) === undefined) {
      return deny(new HubError('invalid_path', 'This address can be read in more than one way.'));
    }
    return options.forwarder() === undefined ? deny(stillStarting()) : undefined;
  }

  function pathForApp(url: string): string | undefined {
    return stripsPrefix ? withoutPrefix(url.slice(prefix.length)) : url;
  }

  async function decide(request: IncomingMessage): Promise<Decision> {
    const decision = obstacle(request) ?? (await hubAuth.authenticate(request));
    if (decision.kind === 'allowed') onTraffic();
    if (decision.kind === 'denied' && decision.error.cause !== undefined) {
      log.warn({ err: decision.error }, 'request refused');
    }
    return decision;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const decision = await decide(request);
    if (decision.kind !== 'allowed') return answer(request, response, decision);
    const forwarder = options.forwarder();
    if (forwarder === undefined) return answer(request, response, deny(stillStarting()));
    forwarder.forward(request, response, toAppRequest(decision));
  }

  async function serveUpgrade(request: IncomingMessage, socket: Socket, head: Buffer) {
    socket.on('error', () => socket.destroy());
    const decision = await decide(request);
    if (socket.destroyed) return;
    if (decision.kind !== 'allowed') return answerOnSocket(socket, toAnswer(decision, false));
    const forwarder = options.forwarder();
    if (forwarder === undefined) {
      return answerOnSocket(socket, toAnswer(deny(stillStarting()), false));
    }
    recheckRegularly(request, socket, decision);
    forwarder.forwardUpgrade(request, socket, head, toAppRequest(decision));
  }

  /** A WebSocket outlives the check at its start: revoked means gone for it too. */
  function recheckRegularly(request: IncomingMessage, socket: Socket, { token }: Allowed): void {
    const sessionId = sessionIdOf(request);
    async function recheck(): Promise<void> {
      const user = await hubAuth.user_for_token(token, { sessionId });
      if (user === null || !hubAuth.allows(user)) socket.destroy();
    }
    const intervalMs = Math.max(hubAuth.cache_max_age * 1000, minRecheckMs);
    const rechecking = createPeriodic({
      intervalMs,
      work: recheck,
      // A hub that cannot tell closes nothing.
      onError: (error) => log.warn({ err: error }, 'could not check a WebSocket'),
    });
    socket.once('close', () => rechecking[Symbol.dispose]());
  }

  function toAppRequest({ user, source, url }: Allowed): AppRequest {
    return {
      path: pathForApp(url) ?? '/',
      stripAuthorization: source !== 'cookie',
      headersToAdd: identityHeaders(
        { name: user.name, groups: user.groups ?? [], scopes: user.scopes ?? [] },
        options.identityHeaders,
      ),
    };
  }

  const { maxConnections, maxRefusals } = budgetConnections({
    configured: undefined,
    openFiles: openFilesLimit(),
  });
  return createHubServer({
    config: limits,
    log,
    limits: createConnectionLimits({
      perAddress: maxConnectionsPerAddress,
      inAll: maxConnections,
      isTrustedPeer: createTrustedPeer(localPeers),
    }),
    maxRefusals,
    request(request, response) {
      serve(request, response).catch((error: unknown) => {
        log.error({ err: error }, 'request failed unexpectedly');
        response.destroy();
      });
    },
    upgrade(request, socket, head) {
      serveUpgrade(request, socket, head).catch((error: unknown) => {
        log.error({ err: error }, 'WebSocket failed unexpectedly');
        socket.destroy();
      });
    },
  });
}

function stillStarting(): HubError {
  return new HubError('unavailable', 'The app is still starting.', {
    hint: 'Try again in a moment.',
    retryAfterSeconds: 1,
  });
}

/** Answers what could not be forwarded to the app. */
export function answerFailure(
  request: IncomingMessage,
  response: ServerResponse,
  error: HubError,
): void {
  answer(request, response, deny(error));
}

function answer(request: IncomingMessage, response: ServerResponse, decision: Answered): void {
  writeAnswer(request, response, toAnswer(decision, prefersHtml(request.headers)));
}
