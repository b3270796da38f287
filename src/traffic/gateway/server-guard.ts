import {
  type Denied,
  deny,
  headerToken,
  isForPage,
  isFromAgent,
  isFromBrowser,
  isPreflight,
  mayFollowLogin,
  type RequestLike,
  single,
} from '../../client/decision.ts';
import { denyUnidentified } from '../../client/hub-auth.ts';
import type { Caller } from '../../identity/rbac/access-check.ts';
import type { AnswerCache } from '../../platform/concurrency/answer-cache.ts';
import { tokenPrefix } from '../../platform/crypto/random.ts';
import { HubError } from '../../platform/errors.ts';
import { tokenParameter, withoutTokenParameter } from '../../platform/protocol/token-parameter.ts';
import { type ChangeSource, watchChanges } from '../../platform/store/change-aware-cache.ts';
import { text } from '../../platform/texts/text.ts';
import type { Route } from '../proxy/route.ts';
import {
  type AccessPolicy,
  type Authorized,
  createCachedPasses,
  type GateDecision,
  passKey,
} from './access-policy.ts';
import type { ConsentCookies } from './consent-cookies.ts';
import type { LoggedInVisitor, LoginAccess } from './login-access.ts';
import type { LoginRedirects } from './login-redirects.ts';
import type { RouteAccess } from './route-access.ts';

/** A route of a user's server that checks its visitors itself. */
export type ServerGuardRoute = Route & {
  readonly serverId: string;
  readonly owner: {
    readonly kind: 'server';
    readonly userName: string;
    readonly serverName: string;
  };
};

/** Whether the server guard stands before a route. */
export function hasServerGuard(route: Route): route is ServerGuardRoute {
  return route.access === 'server' && route.owner.kind === 'server';
}

/**
 * The server guard before users' servers that check their visitors themselves: its user may have replaced the check, so a
 * browser gets there only with a login that has the right, and to another user's server only when its user wants
 * to. What is not a browser and shows no credentials is left to the server: it opens no page. But agents
 * have to be told where they get a token, which no server knows.
 */
export function createServerGuard(deps: {
  readonly database: ChangeSource;
  readonly access: Pick<RouteAccess, 'identify' | 'isGranted'>;
  readonly logins: Pick<LoginAccess, 'visitorOf'>;
  readonly answers: Pick<ConsentCookies, 'isYes'>;
  readonly ways: LoginRedirects;
}): AccessPolicy {
  const { access, logins, answers } = deps;
  const changes = watchChanges(deps.database);
  /** By route and `passKey`. */
  const cached = new WeakMap<Route, AnswerCache<Authorized>>();

  function cachedOf(route: Route): AnswerCache<Authorized> {
    let cache = cached.get(route);
    if (cache === undefined) {
      cache = createCachedPasses(changes);
      cached.set(route, cache);
    }
    return cache;
  }

  /** The decision for a request with a token that the hub knows. */
  async function decideByToken(
    route: ServerGuardRoute,
    request: RequestLike,
  ): Promise<Authorized | Denied | undefined> {
    for (const token of countingTokens(request)) {
      const caller = await access.identify(token);
      if (caller === undefined) continue;
      if (await access.isGranted(caller, route.owner)) return passOfToken(caller);
      // Nor does the server see the token.
      return withoutRight(caller);
    }
    return undefined;
  }

  async function decideByLogin(
    route: ServerGuardRoute,
    request: RequestLike,
    { caller, expiresAtMs }: LoggedInVisitor,
  ): Promise<GateDecision> {
    if (!(await access.isGranted(caller, route.owner))) return withoutRight(caller);
    const { owner, sessionId } = caller;
    const isOwn = owner.name === route.owner.userName;
    if (!isOwn && !answers.isYes(cookiesOf(request), sessionId, route.serverId)) {
      if (mayFollowLogin(request)) return deps.ways.toQuestion(request.url ?? '/', request);
      return deny(
        new HubError(
          'forbidden',
          text`You have not confirmed yet that you want to open this server.`,
          {
            hint: text`Open ${route.prefix} in a window of its own first.`,
          },
        ),
      );
    }
    if (isForPage(request) && (await hasTokenOfAnother(request, caller))) {
      const location = withoutTokenParameter(request.url ?? '/');
      return { kind: 'redirect', location, setCookies: [] };
    }
    return pass({ userName: owner.name, sessionId, expiresAtMs });
  }

  async function decideByCookies(
    route: ServerGuardRoute,
    request: RequestLike,
  ): Promise<GateDecision> {
    const visitor = await logins.visitorOf(cookiesOf(request));
    if (visitor === undefined) return await decideUnknown(route, request);
    return visitor === 'several' ? severalLogins() : await decideByLogin(route, request, visitor);
  }

  /** Whether a link would make a server that takes its token log the visitor in as another user. */
  async function hasTokenOfAnother(request: RequestLike, visitor: Caller): Promise<boolean> {
    const token = tokenParameter(request.url ?? '/');
    const caller = token === undefined ? undefined : await access.identify(token);
    if (caller === undefined) return false;
    const { kind, name } = caller.owner;
    return kind !== visitor.owner.kind || name !== visitor.owner.name;
  }

  async function decideUnknown(
    route: ServerGuardRoute,
    request: RequestLike,
  ): Promise<GateDecision> {
    // Another kind of token may be one of the server itself.
    if (
      isFromAgent(request) &&
      countingTokens(request).every((each) => each.startsWith(tokenPrefix))
    ) {
      const presented = countingTokens(request).map(
        (token) => ({ token, source: 'header' }) as const,
      );
      return denyUnidentified(request, presented);
    }
    if (!isFromBrowser(request) || isPreflight(request)) return pass({});
    if (mayFollowLogin(request)) {
      const url = withoutTokenParameter(request.url ?? '/');
      return await deps.ways.toLogin(route, url, request);
    }
    return deny(
      new HubError('unauthenticated', text`You are not logged in.`, {
        hint: text`Open this page in your browser again, or send a token.`,
      }),
    );
  }

  return {
    known(route, request) {
      const key = passKey(request);
      return key === undefined ? undefined : cached.get(route)?.get(key);
    },

    async decide(route, request) {
      if (!hasServerGuard(route)) throw new TypeError(`there is no door before ${route.prefix}`);
      const cache = cachedOf(route);
      const beginning = cache.begin();
      const decision =
        (await decideByToken(route, request)) ?? (await decideByCookies(route, request));
      if (decision.kind !== 'authorized' || decision.userName === undefined) return decision;
      const key = passKey(request);
      if (key !== undefined) cache.put(key, decision, beginning);
      return decision;
    },
  };
}

/**
 * The tokens of a request, in the order they are tried. One in the address of a page was chosen by the maker of the
 * link, so it does not say who comes.
 */
function countingTokens(request: RequestLike): string[] {
  const inUrl = isForPage(request) ? undefined : tokenParameter(request.url ?? '/');
  return [headerToken(request), inUrl].filter((token) => token !== undefined);
}

function cookiesOf(request: RequestLike): string | undefined {
  return single(request.headers['cookie']);
}

/** The server gets the request as it is: it checks the visitor once more. */
function pass(visitor: Partial<Authorized>): Authorized {
  return {
    kind: 'authorized',
    headers: [],
    groups: [],
    userName: undefined,
    sessionId: undefined,
    accessTokenId: undefined,
    clientId: undefined,
    expiresAtMs: undefined,
    stripAuthorization: false,
    ...visitor,
  };
}

function passOfToken({ owner, sessionId, accessToken }: Caller): Authorized {
  return pass({
    userName: owner.name,
    sessionId,
    accessTokenId: accessToken?.id,
    clientId: accessToken?.clientId,
    expiresAtMs: accessToken?.expiresAt?.getTime(),
  });
}

function withoutRight({ owner }: Caller): Denied {
  const error = new HubError('forbidden', text`You do not have permission to access this server.`, {
    hint: text`Ask its user or an administrator if you should have it.`,
  });
  return deny(error, { user: { kind: owner.kind, name: owner.name } });
}

function severalLogins(): Denied {
  return deny(
    new HubError('forbidden', text`This browser shows the hub more than one login.`, {
      hint: text`Remove the cookies of this site and log in again.`,
    }),
  );
}
