import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { CloseReason } from './live-connections.ts';

/** Nothing listens there, or it cannot be reached: worth another attempt in a moment. */
const unreachable = new Set([
  'EACCES',
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'UPSTREAM_GONE',
]);

const timedOut = new Set([
  'ECONNECT_TIMEOUT',
  'ETIMEDOUT',
  'UPSTREAM_BODY_TIMEOUT',
  'UPSTREAM_CONNECT_TIMEOUT',
  'UPSTREAM_HEADERS_TIMEOUT',
]);

/** Turns what went wrong with an upstream into the answer a client gets. */
export function toUpstreamError(error: unknown): HubError {
  if (error instanceof HubError) return error;
  const code = errorCode(error);
  const cause = error;
  if (unreachable.has(code)) {
    return new HubError('unavailable', text`The application cannot be reached right now.`, {
      cause,
      retryAfterSeconds: 5,
    });
  }
  if (timedOut.has(code)) {
    return takesTooLong(cause);
  }
  if (code === 'UPSTREAM_BAD_REQUEST') {
    return new HubError('bad_request', text`The request cannot be forwarded.`, { cause });
  }
  return new HubError('upstream_failed', text`The application broke off its answer.`, { cause });
}

/** What a client is told whose request is cut off before the answer began. */
export function toCloseError(reason: CloseReason): HubError {
  switch (reason) {
    case 'session_ended':
      return new HubError('unauthenticated', text`Your session has ended.`);
    case 'access_revoked':
      return new HubError('forbidden', text`You may no longer use this application.`);
    case 'route_removed':
      return new HubError('unavailable', text`The application has stopped.`);
    case 'shutting_down':
      return new HubError('unavailable', text`The hub is stopping.`, { retryAfterSeconds: 5 });
  }
}

/** What a client is told while a route is known but its upstream is not ready. */
export function notReadyError(): HubError {
  return new HubError('unavailable', text`The application is starting or restarting.`, {
    hint: text`It will be back in a moment.`,
    retryAfterSeconds: 2,
  });
}

/** What a client is told while the upstream has more requests than it can take. */
export function overloadedError(): HubError {
  return new HubError('unavailable', text`The application has too many requests at once.`, {
    retryAfterSeconds: 2,
  });
}

/** What a client is told whose application takes longer than it may. */
export function takesTooLong(cause?: unknown): HubError {
  return new HubError('upstream_timeout', text`The application did not answer in time.`, { cause });
}

/** The end of a request that does not arrive in the time that its route allows. */
export function uploadTooSlow(): HubError {
  return new HubError('request_timeout', text`The body of the request did not arrive in time.`);
}

function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
