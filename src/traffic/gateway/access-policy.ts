import { type Answered, headerToken, type RequestLike } from '../../client/decision.ts';
import type { AnswerCache } from '../../platform/concurrency/answer-cache.ts';
import { HubError } from '../../platform/errors.ts';
import type { CanonicalPath, ClientAddress } from '../../platform/http/request-address.ts';
import { hasTokenParameter } from '../../platform/protocol/token-parameter.ts';
import {
  type ChangeWatch,
  createChangeAwareCache,
} from '../../platform/store/change-aware-cache.ts';
import { text } from '../../platform/texts/text.ts';
import type { Route } from '../proxy/route.ts';

/** A request that may pass, and what the upstream is told of its visitor. */
export interface Authorized {
  readonly kind: 'authorized';
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Undefined for a program that the server itself has to refuse. */
  readonly userName: string | undefined;
  /** Of the user; empty where the server guard let someone in. */
  readonly groups: readonly string[];
  readonly sessionId: string | undefined;
  readonly accessTokenId: string | undefined;
  /** The OAuth client that came with a token of the visitor. */
  readonly clientId: string | undefined;
  /** When the visitor's token ends, in milliseconds since 1970. */
  readonly expiresAtMs: number | undefined;
  /** Whether the request's own credentials are the hub's and must not reach the upstream. */
  readonly stripAuthorization: boolean;
}

export type GateDecision = Authorized | Answered;

/** Decides who may pass a route. */
export interface AccessPolicy {
  /** The decision, when it is known already: for most requests of a browser that is logged in. */
  known(route: Route, request: RequestLike): Authorized | undefined;
  decide(route: Route, request: RequestLike): Promise<GateDecision>;
}

const cachedPerRoute = 10_000;
/** After this time the whole check runs again, which is also when activity and refresh are noted. */
const cachedMs = 30_000;
/** With longer credentials a request is checked every time, so that what is remembered stays small. */
const maxKeyLength = 2_048;

/** What was allowed at one route, by `passKey`. */
export function createCachedPasses(changes: ChangeWatch): AnswerCache<Authorized> {
  return createChangeAwareCache({
    changes,
    max: cachedPerRoute,
    ttlMs: cachedMs,
    expiresAtMs: ({ expiresAtMs }) => expiresAtMs,
    invalidatedBy: { endOf: ({ sessionId, accessTokenId }) => [sessionId, accessTokenId] },
  });
}

/**
 * Under what a pass may be remembered: the cookies of a request, or its token, where these alone decide. Undefined
 * where more than one thing may, as an address with a token in it.
 */
export function passKey(request: RequestLike): string | undefined {
  const { cookie, authorization } = request.headers;
  if (hasTokenParameter(request.url ?? '')) return undefined;
  const token = cookie === undefined ? headerToken(request) : undefined;
  // No Cookie header holds a line feed, so neither passes for the other.
  const key = authorization === undefined ? cookie : token && `\n${token}`;
  return typeof key !== 'string' || key.length > maxKeyLength ? undefined : key;
}

/** What the rules of a route say of a request: `HubError` refuses it, `everyone` lets it pass unasked. */
export type RuleCheck = HubError | 'everyone' | UsersOnly;

/** Who has access to the service may pass, if in one of the groups where there are any. */
export interface UsersOnly {
  readonly groups: readonly string[] | undefined;
}

const allUsers: UsersOnly = { groups: undefined };

/** Asks the rules of a route about a request; the end of a login is not theirs to decide. */
export function checkRules(
  route: Route,
  { pathname }: Pick<CanonicalPath, 'pathname'>,
  method: string,
  clientOf: () => ClientAddress,
): RuleCheck {
  const { judge, limiter, prefix } = route;
  const barred = limiter?.clientProblem(clientOf());
  if (barred !== undefined) return barred;
  if (judge === undefined) return allUsers;
  if (method === 'GET' && pathname === `${prefix}oauth_callback`) return allUsers;
  const path = belowPrefix(pathname, prefix);
  const verdict = judge({ path, method, address: clientOf().address });
  if (verdict === 'ambiguous') return ambiguousForRules();
  switch (verdict.allow) {
    case 'everyone':
      return 'everyone';
    case 'users':
      return verdict.groups === undefined ? allUsers : { groups: verdict.groups };
    case 'nobody':
      return new HubError('forbidden', text`This part of the app is closed.`);
  }
}

/** Whether a visitor who has access to the service is in one of the groups that a rule names. */
export function isInGroups(
  { groups: own }: Pick<Authorized, 'groups'>,
  { groups }: UsersOnly,
): boolean {
  return groups === undefined || groups.some((group) => own.includes(group));
}

export function notInGroups(): HubError {
  return new HubError('forbidden', text`You do not have permission to open this part of the app.`, {
    hint: text`Ask an administrator if you should have it.`,
  });
}

/** The path below a prefix that it is known to have, however either is encoded. */
function belowPrefix(pathname: string, prefix: string): string {
  if (pathname.startsWith(prefix)) return pathname.slice(prefix.length - 1);
  const segments = prefix.split('/').length - 1;
  return `/${pathname.split('/').slice(segments).join('/')}`;
}

function ambiguousForRules(): HubError {
  return new HubError('invalid_path', text`This address can be read in more than one way.`, {
    hint: text`Write it as the app does: in its case, without doubled slashes, semicolons or encoded slashes.`,
  });
}
