import { HubError } from '../platform/errors.ts';
import { cookieValues } from '../platform/http/cookies.ts';
import { sessionIdCookie } from '../platform/protocol/cookie-names.ts';
import {
  basicChallenge,
  tokenParameter,
  withoutTokenParameter,
} from '../platform/protocol/token-parameter.ts';
import { hasGroupScopes, isAllowed, withScopesForOwner } from './access-rule.ts';
import { type HubAuthOptions, type HubOAuthOptions, resolveOptions } from './client-options.ts';
import {
  type Allowed,
  type Decision,
  type Denied,
  deny,
  headerToken,
  isFromAgent,
  isFromBrowser,
  isTokenShaped,
  type PresentedToken,
  type RequestLike,
  single,
} from './decision.ts';
import { createHttpHubApi } from './http-hub-api.ts';
import type { HubApi, UserModel } from './hub-api.ts';
import { createUserCache, type UserCache } from './user-cache.ts';

/**
 * Checks requests that carry a token of the hub: for services that programs use. Services with pages
 * for browsers take `HubOAuth`. Public names are those of the specification.
 */
export class HubAuth {
  /** Token of this service for the hub's API. */
  readonly api_token: string;
  /** Address of the hub's API, without a slash at its end. */
  readonly api_url: string;
  readonly service_name: string | undefined;
  /** Path of this service, with a slash at both ends. */
  readonly service_prefix: string;
  /** Where the hub is for browsers: a URL or a path, with a slash at its end. */
  readonly hub_base_url: string;
  /** Scopes any of which allows access; checked on every access. */
  oauth_scopes: readonly string[];
  /** In place of `oauth_scopes`, `hub_users` and `hub_groups` when defined. */
  hub_scopes: readonly string[] | undefined;
  hub_users: ReadonlySet<string> | undefined;
  hub_groups: ReadonlySet<string> | undefined;
  /** Seconds an answer of the hub about a token is used again. */
  cache_max_age: number;
  allow_token_in_url: boolean;

  protected readonly hubApi: HubApi;
  readonly #cache: UserCache;

  constructor(options: HubAuthOptions = {}) {
    const settings = resolveOptions(options as HubOAuthOptions);
    this.api_token = settings.apiToken;
    this.api_url = settings.apiUrl;
    this.service_name = settings.serviceName;
    this.service_prefix = settings.servicePrefix;
    this.hub_base_url = settings.hubBaseUrl;
    this.oauth_scopes = settings.oauthScopes;
    this.hub_scopes = options.hub_scopes;
    this.hub_users = options.hub_users === undefined ? undefined : new Set(options.hub_users);
    this.hub_groups = options.hub_groups === undefined ? undefined : new Set(options.hub_groups);
    this.cache_max_age = settings.cacheMaxAgeSeconds;
    this.allow_token_in_url = settings.allowsTokenInUrl;
    const hubApi =
      options.hub_api ??
      createHttpHubApi({
        apiUrl: settings.apiUrl,
        apiToken: settings.apiToken,
        clientId: settings.clientId,
        timeoutMs: settings.requestTimeoutMs,
      });
    this.hubApi = hubApi;
    this.#cache = createUserCache(
      async (token) => (await hubApi.userForToken(token)) ?? undefined,
      () => this.cache_max_age * 1000,
    );
  }

  /** The same as `cache_max_age`. */
  get cookie_cache_max_age(): number {
    return this.cache_max_age;
  }

  set cookie_cache_max_age(seconds: number) {
    this.cache_max_age = seconds;
  }

  /**
   * The user model of a token, or null when it identifies no one. Throws HubError when the hub cannot
   * tell. Give the visitor's `hub-session-id` so that a logout is noticed at once.
   */
  async user_for_token(
    token: string,
    options: { readonly sessionId?: string | undefined; readonly signal?: AbortSignal } = {},
  ): Promise<UserModel | null> {
    if (!isTokenShaped(token)) return null;
    const { sessionId, signal } = options;
    const user = await this.#lookUp(token, sessionId, signal);
    if (user === null || !hasGroupScopes(user) || this.allows(user)) return user;
    // The server of a user asks which groups that user is in, with its own token.
    const owner = await this.#lookUp(this.api_token, undefined, signal);
    return owner === null ? user : withScopesForOwner(user, owner);
  }

  async #lookUp(token: string, sessionId: string | undefined, signal: AbortSignal | undefined) {
    return (await this.#cache.lookUp({ token, sessionId, signal })) ?? null;
  }

  /** Whether a user may use this service by what her model says now. */
  allows(user: UserModel): boolean {
    return isAllowed(user, {
      oauthScopes: this.oauth_scopes,
      hubScopes: this.hub_scopes,
      hubUsers: this.hub_users,
      hubGroups: this.hub_groups,
    });
  }

  /** Decides what shall happen to a request. Never throws for anything a request or the hub does. */
  async authenticate(request: RequestLike): Promise<Decision> {
    try {
      return await this.decide(request);
    } catch (thrown) {
      if (thrown instanceof HubError) return deny(thrown);
      throw thrown;
    }
  }

  /** As `authenticate`, but a hub that cannot tell is thrown. */
  protected async decide(request: RequestLike): Promise<Decision> {
    const sessionId = sessionIdOf(request);
    const presented = this.presentedTokens(request);
    for (const candidate of presented) {
      const user = await this.user_for_token(candidate.token, { sessionId });
      if (user !== null) return this.decideForUser(request, user, candidate);
    }
    return this.decideUnidentified(request, presented);
  }

  /** Tokens of a request in the order they are tried; the first that names a user counts. */
  protected presentedTokens(request: RequestLike): readonly PresentedToken[] {
    const presented: PresentedToken[] = [];
    const inUrl = this.allow_token_in_url ? tokenParameter(request.url ?? '/') : undefined;
    if (inUrl !== undefined) presented.push({ token: inUrl, source: 'url' });
    const inHeader = headerToken(request);
    if (inHeader !== undefined) presented.push({ token: inHeader, source: 'header' });
    return presented;
  }

  protected decideForUser(
    request: RequestLike,
    user: UserModel,
    presented: PresentedToken,
  ): Decision {
    return this.allows(user) ? allow(request, user, presented) : denyAccess(user);
  }

  protected decideUnidentified(
    request: RequestLike,
    presented: readonly PresentedToken[],
  ): Decision {
    return denyUnidentified(request, presented);
  }
}

/** The id that ties what is remembered about a token to the browser's login. */
export function sessionIdOf(request: RequestLike): string | undefined {
  return cookieValues(single(request.headers['cookie']), sessionIdCookie)[0];
}

/** Denies a request without a usable token (RFC 6750 §3.1). */
export function denyUnidentified(
  request: RequestLike,
  presented: readonly PresentedToken[],
): Denied {
  const isInvalid = presented.some(({ source }) => source !== 'cookie');
  const error = isInvalid
    ? new HubError('unauthenticated', 'The token is not valid.', {
        hint: 'It may have expired or been revoked.',
      })
    : new HubError('unauthenticated', 'You are not logged in.', {
        hint: 'Open this page in your browser again, or send a token.',
      });
  const bearer = isInvalid ? 'Bearer realm="hub", error="invalid_token"' : 'Bearer realm="hub"';
  const hasPassword = !isFromBrowser(request) && !isFromAgent(request);
  const challenge = !hasPassword ? bearer : `${basicChallenge}, ${bearer}`;
  return deny(error, { headers: { 'www-authenticate': challenge } });
}

function allow(request: RequestLike, user: UserModel, presented: PresentedToken): Allowed {
  const url = request.url ?? '/';
  const { token, source } = presented;
  return {
    kind: 'allowed',
    user,
    token,
    source,
    url: source === 'url' ? withoutTokenParameter(url) : url,
  };
}

/** RFC 6750 §3.1, `insufficient_scope`. Never a redirect: logging in again would change nothing. */
function denyAccess(user: UserModel): Denied {
  const error = new HubError('forbidden', 'You do not have permission to use this service.', {
    hint: 'Ask an administrator if you should have it.',
  });
  const challenge = 'Bearer realm="hub", error="insufficient_scope"';
  return deny(error, { user, headers: { 'www-authenticate': challenge } });
}
