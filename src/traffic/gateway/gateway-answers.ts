import type { IncomingMessage } from 'node:http';
import { tokenPrefix } from '../../platform/crypto/random.ts';
import { HubError } from '../../platform/errors.ts';
import { cookieValues } from '../../platform/http/cookies.ts';
import { sessionIdCookie } from '../../platform/protocol/cookie-names.ts';
import { authorizationToken, tokenParameter } from '../../platform/protocol/token-parameter.ts';
import { text } from '../../platform/texts/text.ts';
import type { Route } from '../proxy/route.ts';
import type { GateDecision } from './access-policy.ts';
import type { Visitor } from './traffic.ts';

/** Whether a request shows a token of the hub, where no one asked for it: the upstream is not to see it. */
export function showsHubToken(req: IncomingMessage, { access }: Route): boolean {
  if (access !== 'gateway') return false;
  const shown = [
    authorizationToken(req.headers.authorization)?.token,
    tokenParameter(req.url ?? '/'),
  ];
  return shown.some((token) => token?.startsWith(tokenPrefix) === true);
}

/** Where the upstream checks visitors itself, the session id still ties a connection to its login. */
export function sessionIdOf(req: IncomingMessage, route: Route): string | undefined {
  if (route.access === 'public' || route.access === 'foreign') return undefined;
  return cookieValues(req.headers.cookie, sessionIdCookie)[0];
}

export function visitorOf(decision: GateDecision): Visitor {
  switch (decision.kind) {
    case 'authorized':
      return { userName: decision.userName };
    case 'denied':
      return { userName: decision.user?.name };
    case 'redirect':
    case 'page':
      return {};
  }
}

export function ambiguousPath(): HubError {
  return new HubError('invalid_path', text`This address can be read in more than one way.`, {
    hint: text`Write it without dot segments, backslashes, doubled or encoded slashes.`,
  });
}

export function nothingHere(): HubError {
  return new HubError('not_found', text`There is nothing at this address.`);
}

export function noWebSocket(): HubError {
  return new HubError('not_found', text`There is no WebSocket at this address.`);
}

export function behindProxy(): HubError {
  return new HubError('not_found', text`This app is reached by way of another proxy.`, {
    hint: text`Open it at its own address.`,
  });
}

export function outdated(): HubError {
  return new HubError('unavailable', text`The hub cannot be asked who you are at the moment.`, {
    hint: text`Try again in a few seconds.`,
    retryAfterSeconds: 5,
  });
}

export function loginNeeded(): HubError {
  return new HubError('unauthenticated', text`Log in first.`);
}

export function asHubError(thrown: unknown): HubError {
  return thrown instanceof HubError
    ? thrown
    : new HubError('internal', text`The hub could not check who you are.`, { cause: thrown });
}
