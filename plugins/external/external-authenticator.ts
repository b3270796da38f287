import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
  type TokenEndpointResponse,
  type TokenEndpointResponseHelpers,
} from 'openid-client';
import type {
  AuthenticatedUser,
  AuthenticationResult,
  AuthenticatorHost,
  ExternalAuthenticator,
  LoginIcon,
  LoginMethod,
  RefreshResult,
} from '../../src/plugin/plugin.ts';
import { type AccessRules, judge } from './access-rules.ts';
import { type AuthState, readAuthState, stateOf } from './auth-state.ts';
import { type Claims, claimAt, infoOf, textAt } from './claims.ts';
import type { Connection, Connector } from './connection.ts';
import { explainFailure, UntrustedAnswer } from './provider-errors.ts';
import { requireSignature, verifyLogoutToken } from './signed-tokens.ts';

/** What the shared login code must know of a provider. */
export interface ExternalLogin {
  readonly label: LoginMethod['label'];
  readonly icon: LoginIcon;
  readonly connector: Connector;
  readonly scopes: readonly string[];
  readonly authorizeParameters: Readonly<Record<string, string>>;
  /** Added where the provider is to ask for credentials again, even if it knows the browser. */
  readonly askAgainParameters: Readonly<Record<string, string>>;
  /** Whether the provider speaks OpenID Connect: then a signed ID token must come. */
  readonly hasIdToken: boolean;
  readonly usernameClaim: string;
  /** Names of this domain are without it. */
  readonly strippedDomain: string | undefined;
  readonly rules: AccessRules;
  readonly clockToleranceSeconds: number;
  readonly logoutRedirectUrl: string | undefined;
  readonly logsOutAtProvider: boolean;
  /** Values of `acr` in the ID token that stand for a second factor. */
  readonly secondFactorAcr?: readonly string[];
  /** Asks the provider about the person, beyond what the ID token says. */
  readonly readUser: (query: UserQuery) => Promise<Claims>;
  /** The stable id in the claims; undefined when there is none. */
  readonly subjectOf: (claims: Claims) => string | undefined;
  /** Issuer of the identity when there is no ID token to tell it. */
  readonly issuer: string;
  /** Asks the provider for what anyone may see; throws when it does not answer as it should. */
  readonly reach: () => Promise<void>;
  /** Where `reach` asks. */
  readonly reachUrl: string;
}

export interface UserQuery {
  readonly connection: Connection;
  readonly accessToken: string;
  /** Claims of the ID token; none in plain OAuth 2. */
  readonly idClaims: Claims;
}

/** `ada` of `ada@example.org`, where that is the domain; any other name as it is. */
function withoutDomain(name: string, domain: string | undefined): string {
  const at = name.lastIndexOf('@');
  return at > 0 && name.slice(at + 1).toLowerCase() === domain ? name.slice(0, at) : name;
}

type Tokens = TokenEndpointResponse & TokenEndpointResponseHelpers;

/** How much earlier than its end an access token counts as expired. */
const expiryMarginMs = 30_000;

/** Creates an authenticator that sends people to a provider and takes them back. */
export function createExternalAuthenticator(
  login: ExternalLogin,
  host: AuthenticatorHost,
): ExternalAuthenticator {
  const { connector, rules, usernameClaim, strippedDomain } = login;

  /** Turns the claims into a user of the hub. Throws UntrustedAnswer when they do not say who. */
  function userOf(claims: Claims, authState: AuthState): AuthenticatedUser {
    const claimed = textAt(claims, usernameClaim);
    if (claimed === undefined) {
      const known = Object.keys(claims).slice(0, 50).join(', ').slice(0, 500);
      throw new UntrustedAnswer(
        `the claim ${usernameClaim} (username_claim) is missing or not text; there are: ${known}`,
      );
    }
    if (usernameClaim === 'email' && claims['email_verified'] !== true) {
      throw new UntrustedAnswer('the e-mail address is the user name but is not verified');
    }
    const name = withoutDomain(claimed, strippedDomain);
    const subject = login.subjectOf(claims);
    if (subject === undefined)
      throw new UntrustedAnswer('the provider sent no stable id of the person');
    const { reasons, ...verdict } = judge(claims, rules);
    if (reasons.length > 0) {
      const refused = verdict.allowed === false;
      host.log[refused ? 'warn' : 'debug'](
        { reasons, user: name.slice(0, 100) },
        'not every rule of this provider is met',
      );
    }
    const display = textAt(claims, 'email') ?? textAt(claims, 'name') ?? name;
    const sessionId = textAt(authState.idClaims, 'sid');
    return {
      name,
      issuer: textAt(authState.idClaims, 'iss') ?? login.issuer,
      subject,
      display: display.slice(0, 200),
      info: infoOf(claims),
      ...verdict,
      authState: { ...authState },
      isMultiFactor: hasSecondFactor(authState.idClaims, login.secondFactorAcr),
      ...(sessionId !== undefined && { upstreamSessionId: sessionId }),
    };
  }

  async function checkedIdClaims(tokens: Tokens, { config, keys }: Connection): Promise<Claims> {
    const claims = tokens.claims();
    if (claims === undefined || keys === undefined) return {};
    await requireSignature(tokens.id_token ?? '', config.serverMetadata(), keys);
    return { ...claims };
  }

  async function complete(
    url: URL,
    state: string,
    pending: Readonly<Record<string, string>>,
  ): Promise<AuthenticatedUser> {
    const connection = await connector.get();
    const { nonce, codeVerifier, askedAgainAt } = pending;
    if (codeVerifier === undefined || (login.hasIdToken && nonce === undefined)) {
      throw new UntrustedAnswer('the login was begun in another way');
    }
    const tokens = await authorizationCodeGrant(connection.config, url, {
      expectedState: state,
      pkceCodeVerifier: codeVerifier,
      idTokenExpected: login.hasIdToken,
      ...(login.hasIdToken && nonce !== undefined && { expectedNonce: nonce }),
    });
    const idClaims = await checkedIdClaims(tokens, connection);
    requireNoFuture(idClaims);
    if (askedAgainAt !== undefined) requireAskedAgain(idClaims, Number(askedAgainAt));
    const accessToken = tokens.access_token;
    const answer = await login.readUser({ connection, accessToken, idClaims });
    const claims = merge(idClaims, answer);
    const user = userOf(claims, stateOf(tokens, { idClaims, claims }));
    return tokens.id_token === undefined ? user : { ...user, idToken: tokens.id_token };
  }

  async function refresh(former: AuthState, signal: AbortSignal): Promise<AuthenticatedUser> {
    const connection = await connector.get();
    const isExpired =
      former.expiresAt !== undefined && former.expiresAt - expiryMarginMs < Date.now();
    if (!isExpired || former.refreshToken === undefined) {
      const fresh = await claimsWith(former, connection);
      if (fresh !== undefined) return userOf(fresh, { ...former, claims: fresh });
      if (former.refreshToken === undefined) throw new TokenExpired();
    }
    signal.throwIfAborted();
    const tokens = await refreshTokenGrant(connection.config, former.refreshToken);
    const newIdClaims = await checkedIdClaims(tokens, connection);
    requireSamePerson(former.idClaims, newIdClaims);
    const idClaims = { ...former.idClaims, ...newIdClaims };
    const state = stateOf(
      tokens,
      { idClaims, claims: { ...former.claims, ...newIdClaims } },
      former,
    );
    try {
      const accessToken = tokens.access_token;
      const claims = merge(idClaims, await login.readUser({ connection, accessToken, idClaims }));
      return userOf(claims, { ...state, claims });
    } catch (error) {
      if (explainFailure(error).kind !== 'unavailable') throw error;
      // The former refresh token is used up: losing the new one would end the login.
      return userOf(state.claims, state);
    }
  }

  /** What the provider says with the token there is; undefined when a new token must be had first. */
  async function claimsWith(
    former: AuthState,
    connection: Connection,
  ): Promise<Claims | undefined> {
    const { accessToken, idClaims } = former;
    try {
      const answer = await login.readUser({ connection, accessToken, idClaims });
      const needsToken = former.refreshToken !== undefined && isStale(answer, idClaims);
      return needsToken ? undefined : merge(idClaims, answer);
    } catch (error) {
      if (explainFailure(error).kind === 'token_refused') return undefined;
      throw error;
    }
  }

  /** Whether a claim that decides something is only in the ID token, which does not change by itself. */
  function isStale(answer: Claims, idClaims: Claims): boolean {
    const { groupsClaim, rolesClaim, gates, grants, allowedDomains } = rules;
    const deciding = [
      ...[groupsClaim, rolesClaim, ...[...gates, ...grants].map(({ claim }) => claim)],
      ...(allowedDomains.length > 0 ? ['email', 'email_verified'] : []),
    ];
    return deciding.some(
      (path) =>
        path !== undefined &&
        claimAt(answer, path) === undefined &&
        claimAt(idClaims, path) !== undefined,
    );
  }

  function refused(error: unknown): AuthenticationResult {
    const { kind, explanation } = explainFailure(error);
    if (kind === 'unavailable') {
      connector.noteFailure(explanation);
      host.log.warn({ reason: explanation }, 'login failed, provider did not answer');
      throw error;
    }
    const reason = kind === 'token_refused' ? 'provider' : kind;
    const level = kind === 'cancelled' ? 'info' : 'warn';
    host.log[level]({ reason: explanation }, 'a login at the provider came to nothing');
    return { outcome: 'refused', reason };
  }

  /** A token from the future comes from a clock that is wrong, and would be good for too long. */
  function requireNoFuture({ iat }: Claims): void {
    const ahead = typeof iat === 'number' ? iat - Date.now() / 1000 : 0;
    if (ahead <= login.clockToleranceSeconds) return;
    throw new UntrustedAnswer(
      `the ID token was issued ${Math.round(ahead)} seconds in the future; compare the clocks of both machines, or raise clock_tolerance`,
    );
  }

  /**
   * A provider that tells when the user gave their credentials must not tell of a time before it was asked
   * (OpenID Connect Core 1.0 §3.1.2.1, max_age). Not all tell it.
   */
  function requireAskedAgain({ auth_time: authTime }: Claims, askedAt: number): void {
    if (typeof authTime !== 'number' || authTime >= askedAt - login.clockToleranceSeconds) return;
    throw new UntrustedAnswer(
      'the provider did not ask for the credentials again, although it was told to (prompt=login)',
    );
  }

  return {
    login: { kind: 'external', label: login.label, icon: login.icon },

    open: () => connector.start(),

    async reach() {
      try {
        await login.reach();
      } catch (error) {
        const { explanation } = explainFailure(error);
        throw new Error(`${login.reachUrl}: ${explanation}`, { cause: error });
      }
    },

    async beginLogin(_request, options) {
      const { config } = await connector.get();
      const asksAgain = options?.asksAgain === true;
      const state = randomState();
      const nonce = randomNonce();
      const codeVerifier = randomPKCECodeVerifier();
      const location = buildAuthorizationUrl(config, {
        ...login.authorizeParameters,
        ...(asksAgain && login.askAgainParameters),
        redirect_uri: host.callbackUrl,
        ...(login.scopes.length > 0 && { scope: login.scopes.join(' ') }),
        state,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
        ...(login.hasIdToken && { nonce }),
      });
      const pending = {
        codeVerifier,
        ...(login.hasIdToken && { nonce }),
        ...(asksAgain && { askedAgainAt: String(Math.floor(Date.now() / 1000)) }),
      };
      return { location: location.href, state, pending };
    },

    async completeLogin({ url, state, pending }) {
      try {
        const user = await complete(url, state, pending);
        connector.noteSuccess();
        return { outcome: 'authenticated', user };
      } catch (error) {
        return refused(error);
      }
    },

    async refreshUser({ authState }, { signal }): Promise<RefreshResult> {
      const former = readAuthState(authState);
      if (former === undefined) return { outcome: 'login_required' };
      try {
        const user = await refresh(former, signal);
        connector.noteSuccess();
        return { outcome: 'updated', user };
      } catch (error) {
        if (error instanceof TokenExpired) return { outcome: 'login_required' };
        const { kind, explanation } = explainFailure(error);
        host.log.warn({ reason: explanation, kind }, 'login not confirmed by provider');
        if (kind !== 'unavailable') return { outcome: 'login_required' };
        connector.noteFailure(explanation);
        return { outcome: 'unavailable', message: explanation };
      }
    },

    async logoutUrl({ idToken, returnTo }) {
      if (login.logoutRedirectUrl !== undefined) return login.logoutRedirectUrl;
      const config = connector.current()?.config;
      const offersLogout = config?.serverMetadata().end_session_endpoint !== undefined;
      if (!login.logsOutAtProvider || config === undefined || !offersLogout) return undefined;
      const hint = idToken === undefined ? {} : { id_token_hint: idToken };
      return buildEndSessionUrl(config, { ...hint, post_logout_redirect_uri: returnTo }).href;
    },

    ...(login.hasIdToken && {
      async verifyLogoutToken(logoutToken: string) {
        const { config, keys } = await connector.get();
        if (keys === undefined)
          return { outcome: 'invalid', message: 'there are no keys' } as const;
        return await verifyLogoutToken(logoutToken, {
          server: config.serverMetadata(),
          keys,
          clientId: config.clientMetadata().client_id,
          clockToleranceSeconds: login.clockToleranceSeconds,
        });
      },
    }),

    status: () => connector.status(),
    [Symbol.asyncDispose]: async () => connector.close(),
  };
}

/** The access token has ended and nothing is there to get another. */
class TokenExpired extends Error {
  override readonly name = 'TokenExpired';
}

/** Claims that only a signed ID token may say. */
const signedClaims = new Set([
  'iss',
  'sub',
  'aud',
  'exp',
  'iat',
  'nonce',
  'azp',
  'sid',
  'auth_time',
]);

/** Whether an ID token says that more than one factor was used: `amr` with `mfa` (RFC 8176 §2), or by its `acr`. */
function hasSecondFactor({ amr, acr }: Claims, values: readonly string[] = []): boolean {
  if (Array.isArray(amr) && amr.includes('mfa')) return true;
  return typeof acr === 'string' && values.includes(acr);
}

/** The newer answer of the user endpoint wins, but not over what makes the ID token one. */
function merge(idClaims: Claims, answer: Claims): Claims {
  const isPlain = Object.keys(idClaims).length === 0;
  const added = Object.entries(answer).filter(([name]) => isPlain || !signedClaims.has(name));
  return { ...idClaims, ...Object.fromEntries(added) };
}

/** A refreshed ID token must be about the same person (OpenID Connect Core 1.0 §12.2). */
function requireSamePerson(former: Claims, refreshed: Claims): void {
  for (const claim of ['iss', 'sub']) {
    if (Object.hasOwn(refreshed, claim) && refreshed[claim] !== former[claim]) {
      throw new UntrustedAnswer('the refreshed ID token is about another user');
    }
  }
}
