import { Secret } from '../platform/config/secret.ts';
import { hashSecret } from '../platform/crypto/hash.ts';
import { randomSecret } from '../platform/crypto/random.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { HubError } from '../platform/errors.ts';
import { isNavigation } from '../platform/http/content-negotiation.ts';
import { type CookieAttributes, serializeCookie } from '../platform/http/cookies.ts';
import {
  createRedirectLoopGuard,
  type RedirectLoopGuard,
} from '../platform/http/redirect-loop-guard.ts';
import { safeRedirectTarget } from '../platform/http/redirect-target.ts';
import {
  createStateCookies,
  type PendingState,
  type StateCookies,
} from '../platform/http/state-cookies.ts';
import { hostPrefix, stateCookieName, tokenCookieName } from '../platform/protocol/cookie-names.ts';
import { formatScopeList } from '../platform/protocol/scope-list.ts';
import { tokenParameter, withoutTokenParameter } from '../platform/protocol/token-parameter.ts';
import { type HubOAuthOptions, missing, resolveOptions, scopeList } from './client-options.ts';
import {
  type Decision,
  type Denied,
  deny,
  headerToken,
  isForged,
  mayFollowLogin,
  type PresentedToken,
  type Redirected,
  type RequestLike,
  single,
} from './decision.ts';
import type { UserModel } from './hub-api.ts';
import { denyUnidentified, HubAuth, sessionIdOf } from './hub-auth.ts';
import { createTokenCookie, type TokenCookie } from './token-cookie.ts';
import {
  createTokenLinks,
  linkIdOf,
  linkUrl,
  type PendingLink,
  tokenLinkPage,
} from './token-link.ts';

/** A login that has left for the hub and not come back. `next`: undefined for the service's prefix. */
interface PendingAuthorization extends PendingState {
  /** RFC 7636 §4.1 */
  readonly codeVerifier: string;
  /** How often the same page has just led to a login. */
  readonly round: number;
}

/** The same page may lead to a login this often in a row before it is called a loop. */
const maxRounds = 3;

/** A longer one would not fit into a cookie with everything else that a login has to remember. */
const maxReturnTargetLength = 1024;
/** Paths are resolved against it where the service's own origin does not matter. */
const placeholderOrigin = new URL('http://service.invalid/');

/**
 * Logs browsers in with the hub by OAuth 2 (RFC 6749 §4.1 with PKCE), and checks every request of them
 * and of programs. It answers its own callback: `authenticate` does all of it.
 */
export class HubOAuth extends HubAuth {
  readonly oauth_client_id: string;
  /** A path means that path on the hub's public origin. */
  readonly oauth_redirect_uri: string;
  /** What the names of the cookies of logins under way begin with; each has a suffix of its own. */
  readonly state_cookie_name: string;
  /** Scopes a login asks for, beside those that allow access. */
  request_scopes: readonly string[];

  readonly #publicOrigin: string | undefined;
  readonly #callbackPath: string;
  readonly #issuer: string | undefined;
  readonly #hasHostCookies: boolean;
  readonly #tokenCookie: TokenCookie;
  readonly #stateCookies: StateCookies<PendingAuthorization>;
  readonly #tokenLinks: StateCookies<PendingLink>;
  readonly #redirectLoopGuard: RedirectLoopGuard;

  constructor(options: HubOAuthOptions = {}) {
    super(options);
    const env = options.environment ?? process.env;
    const settings = resolveOptions(options);
    const { clientId, publicOrigin, hubBaseUrl, apiToken, servicePrefix } = settings;
    if (clientId === undefined) {
      throw missing('oauth_client_id', 'HUB_CLIENT_ID (or HUB_SERVICE_NAME)');
    }
    this.oauth_client_id = clientId;
    this.oauth_redirect_uri =
      options.oauth_redirect_uri ??
      (env['HUB_OAUTH_CALLBACK_URL'] || `${servicePrefix}oauth_callback`);
    const cookieName = (settings.hasHostCookies ? hostPrefix : '') + tokenCookieName(clientId);
    this.state_cookie_name = options.state_cookie_name ?? stateCookieName(cookieName);
    this.request_scopes =
      options.request_scopes ??
      scopeList(env, 'request_scopes', 'HUB_OAUTH_CLIENT_ALLOWED_SCOPES') ??
      [];
    this.#publicOrigin = publicOrigin;
    this.#hasHostCookies = settings.hasHostCookies;
    this.#callbackPath = new URL(this.oauth_redirect_uri, placeholderOrigin).pathname;
    this.#issuer = options.issuer ?? (hubBaseUrl.startsWith('/') ? undefined : hubBaseUrl);
    const secrets = [options.cookie_secret ?? apiToken].flat().map((text) => new Secret(text));
    const sealer = createSealer(secrets, 'client-cookies');
    this.#tokenCookie = createTokenCookie(sealer, cookieName);
    this.#stateCookies = createStateCookies(sealer, this.state_cookie_name);
    this.#tokenLinks = createTokenLinks(sealer, this.state_cookie_name);
    this.#redirectLoopGuard = createRedirectLoopGuard(
      sealer,
      `${stateCookieName(cookieName)}-round`,
    );
  }

  /** Name of the cookie that holds the visitor's token. */
  get cookie_name(): string {
    return this.#tokenCookie.name;
  }

  /** The token in a Cookie header, not yet checked with the hub. Cheap enough for every request. */
  cookieToken(cookieHeader: string | undefined): string | undefined {
    return this.#tokenCookie.read(cookieHeader);
  }

  /** Whether a URL (path and query) is the callback that `authenticate` answers itself. */
  isCallback(url: string): boolean {
    return url.split('?', 1)[0] === this.#callbackPath;
  }

  /** Sends a browser to the hub's login and back to `next`, a path of this service. */
  login(request: RequestLike, next?: string): Redirected | Denied {
    const cookies = single(request.headers['cookie']);
    const attributes = this.#cookieAttributes(request);
    const target = returnTarget(next ?? request.url, this.service_prefix, this.#callbackPath);
    const round = this.#redirectLoopGuard.next(cookies, target);
    if (round >= maxRounds) {
      return deny(
        new HubError('forbidden', 'Your login is not kept by your browser.', {
          hint: 'Remove the cookies of this site, allow new ones, and load the page again.',
        }),
        { setCookies: [this.#redirectLoopGuard.clear(attributes)] },
      );
    }
    const state = randomSecret(24);
    const codeVerifier = randomSecret(32);
    const pending = { next: target, round, codeVerifier };
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: this.oauth_client_id,
      redirect_uri: this.oauth_redirect_uri,
      scope: formatScopeList(this.#requestedScopes()),
      state,
      code_challenge: hashSecret(codeVerifier),
      code_challenge_method: 'S256',
    });
    const location = `${this.hub_base_url}hub/api/oauth2/authorize?${query}`;
    return {
      kind: 'redirect',
      location,
      setCookies: this.#stateCookies.begin(cookies, state, pending, attributes),
    };
  }

  /** Forgets the visitor's token and sends the browser to the hub's logout, which revokes it. */
  logout(request: RequestLike): Redirected {
    const attributes = { ...this.#cookieAttributes(request), maxAgeSeconds: 0 };
    const cleared = serializeCookie(this.cookie_name, '', attributes);
    return { kind: 'redirect', location: `${this.hub_base_url}hub/logout`, setCookies: [cleared] };
  }

  protected override async decide(request: RequestLike): Promise<Decision> {
    const { method = 'GET', url = '/' } = request;
    if (this.isCallback(url)) {
      const linkId = linkIdOf(url);
      if (linkId !== undefined) return await this.#answerLink(request, linkId);
      if (method === 'GET') return await this.#finishLogin(request);
    }
    return (await this.#followLink(request)) ?? (await super.decide(request));
  }

  protected override presentedTokens(request: RequestLike): readonly PresentedToken[] {
    const presented = super.presentedTokens(request);
    const token = this.cookieToken(single(request.headers['cookie']));
    return token === undefined ? presented : [...presented, { token, source: 'cookie' }];
  }

  protected override decideForUser(
    request: RequestLike,
    user: UserModel,
    presented: PresentedToken,
  ): Decision {
    const decision = super.decideForUser(request, user, presented);
    if (decision.kind !== 'allowed') return decision;
    if (presented.source === 'cookie' && isForged(request, this.#publicOrigin)) {
      return denyForged(user);
    }
    return decision;
  }

  protected override decideUnidentified(
    request: RequestLike,
    presented: readonly PresentedToken[],
  ): Decision {
    if (!mayFollowLogin(request)) return denyUnidentified(request, presented);
    const isStale = presented.some(({ source }) => source === 'url');
    return this.login(request, isStale ? withoutTokenParameter(request.url ?? '/') : request.url);
  }

  /**
   * A token in the address of a page would stay in the history and leak with it, so it goes into the cookie. But a
   * link was made by another person, who must not decide as whom its reader is logged in: a login that there is
   * stays, and else the reader is asked. Undefined for what is no such link.
   */
  async #followLink(request: RequestLike): Promise<Decision | undefined> {
    const { method, url = '/', headers } = request;
    const token = this.allow_token_in_url ? tokenParameter(url) : undefined;
    if (token === undefined || headerToken(request) !== undefined) return undefined;
    if (!isNavigation(method, headers)) return undefined;
    const sessionId = sessionIdOf(request);
    const user = await this.user_for_token(token, { sessionId });
    if (user === null) return undefined;
    const target =
      returnTarget(withoutTokenParameter(url), this.service_prefix, this.#callbackPath) ??
      this.service_prefix;
    const cookies = single(headers['cookie']);
    const ownToken = this.cookieToken(cookies);
    const current =
      ownToken === undefined ? null : await this.user_for_token(ownToken, { sessionId });
    if (current !== null) return { kind: 'redirect', location: target, setCookies: [] };
    if (!this.allows(user)) return undefined;
    const linkId = randomSecret(24);
    return {
      kind: 'redirect',
      location: linkUrl(this.#callbackPath, linkId),
      setCookies: this.#tokenLinks.begin(
        cookies,
        linkId,
        { next: target, token },
        this.#cookieAttributes(request),
      ),
    };
  }

  /** Asks the reader of a link (GET), and goes on as the user of its token (POST). */
  async #answerLink(request: RequestLike, linkId: string): Promise<Decision> {
    const link = this.#tokenLinks.find(single(request.headers['cookie']), linkId);
    const user =
      link && (await this.user_for_token(link.token, { sessionId: sessionIdOf(request) }));
    if (link === undefined || user === undefined || user === null || !this.allows(user)) {
      return deny(
        new HubError('forbidden', 'This link was not followed in this browser, or too long ago.', {
          hint: 'Follow the link again.',
        }),
      );
    }
    const { next = this.service_prefix, token } = link;
    if (request.method !== 'POST') {
      const action = linkUrl(this.#callbackPath, linkId);
      return tokenLinkPage({ userName: user.name, action, ownUrl: next });
    }
    if (isForged(request, this.#publicOrigin)) return denyForged(user);
    const attributes = this.#cookieAttributes(request);
    return {
      kind: 'redirect',
      location: next,
      setCookies: [
        ...this.#tokenLinks.end(linkId, attributes),
        this.#tokenCookie.write(token, attributes),
      ],
    };
  }

  /** Specification: Service callback rules, 2 to 4. */
  async #finishLogin(request: RequestLike): Promise<Decision> {
    const cookies = single(request.headers['cookie']);
    const query = new URLSearchParams((request.url ?? '').split('?').slice(1).join('?'));
    const state = query.get('state') ?? '';
    const login = this.#stateCookies.find(cookies, state);
    const attributes = this.#cookieAttributes(request);
    const ended = login === undefined ? [] : this.#stateCookies.end(state, attributes);

    const refusal = this.#callbackRefusal(query, login);
    if (refusal !== undefined) return deny(refusal, { setCookies: ended });
    if (login === undefined) throw new Error('a callback without a login was not refused');

    const result = await this.hubApi.exchangeCode({
      code: query.get('code') ?? '',
      redirectUri: this.oauth_redirect_uri,
      codeVerifier: login.codeVerifier,
    });
    const user =
      result.outcome === 'issued'
        ? await this.user_for_token(result.accessToken, { sessionId: sessionIdOf(request) })
        : null;
    if (result.outcome === 'refused' || user === null) {
      return deny(loginFailed('The login could not be completed.'), { setCookies: ended });
    }
    const maxAgeSeconds = result.expiresInSeconds;
    return {
      kind: 'redirect',
      location: login.next ?? this.service_prefix,
      setCookies: [
        ...ended,
        this.#redirectLoopGuard.save(login, attributes),
        this.#tokenCookie.write(result.accessToken, {
          ...attributes,
          ...(maxAgeSeconds === undefined ? {} : { maxAgeSeconds }),
        }),
      ],
    };
  }

  /**
   * A login is for this one service: of the scopes that allow access, those for all servers of a user or all
   * services are not asked for, because the hub refuses what a client is not allowed.
   */
  #requestedScopes(): string[] {
    const allowing = (this.hub_scopes ?? this.oauth_scopes).filter(
      (scope) => !scope.startsWith('access:') || /!(?:server|service)=/.test(scope),
    );
    return [...new Set([...allowing, ...this.request_scopes])];
  }

  #callbackRefusal(
    query: URLSearchParams,
    login: PendingAuthorization | undefined,
  ): HubError | undefined {
    if (query.has('error')) {
      return query.get('error') === 'access_denied'
        ? loginFailed('Access to this service was not granted.')
        : loginFailed('The hub could not complete the login.');
    }
    if (!query.get('code')) return loginFailed('The login came back without a code.');
    if (login === undefined) {
      return loginFailed('This login was not started in this browser, or too long ago.');
    }
    // RFC 9207 §2.4: an answer of another issuer is a mix-up attack.
    const issuer = query.get('iss');
    if (issuer !== null && this.#issuer !== undefined && !isSameUrl(issuer, this.#issuer)) {
      return loginFailed('The login was not answered by the hub.');
    }
    return undefined;
  }

  #cookieAttributes(request: RequestLike): CookieAttributes {
    const isHttps =
      this.#publicOrigin === undefined
        ? single(request.headers['x-forwarded-proto']) === 'https'
        : this.#publicOrigin.startsWith('https:');
    const path = this.#hasHostCookies ? '/' : this.service_prefix;
    return { path, secure: isHttps || this.#hasHostCookies, httpOnly: true, sameSite: 'Lax' };
  }
}

function denyForged(user: UserModel): Denied {
  return deny(
    new HubError('csrf_failed', 'This request came from another site.', {
      hint: 'Go to the page itself and try again.',
    }),
    { user },
  );
}

function loginFailed(message: string): HubError {
  return new HubError('forbidden', message, { hint: 'Open the page again to start a new login.' });
}

function isSameUrl(left: string, right: string): boolean {
  return left.replace(/\/$/, '') === right.replace(/\/$/, '');
}

/** A path below the service's prefix that a login may lead back to; undefined for anything else. */
function returnTarget(
  url: string | undefined,
  prefix: string,
  callbackPath: string,
): string | undefined {
  if (url === undefined || !url.startsWith('/')) return undefined;
  const short = url.length > maxReturnTargetLength ? (url.split(/[?#]/, 1)[0] ?? '') : url;
  const target = safeRedirectTarget(short, placeholderOrigin);
  if (target === undefined || !target.startsWith(prefix)) return undefined;
  if (target.length > maxReturnTargetLength) return undefined;
  return target.split(/[?#]/, 1)[0] === callbackPath ? undefined : target;
}
