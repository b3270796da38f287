import type { Logger } from 'pino';
import { callbackUrlOf } from '../../platform/config/callback-url.ts';
import { HubError } from '../../platform/errors.ts';
import type { Phrase } from '../../platform/texts/text.ts';
import { text } from '../../platform/texts/text.ts';
import type { ExternalAuthenticator, LoginRequest } from '../../plugin/host/authenticator.ts';
import { isExternal } from '../../plugin/host/login-kinds.ts';
import type { Login } from '../sessions/login-sessions.ts';
import type {
  AuthorizationRequest,
  AuthorizationRequestStates,
} from './authorization-request-states.ts';
import type { Authenticators, NamedAuthenticator } from './create-authenticators.ts';
import type { LinkIdentity } from './identity-linking.ts';
import { loginLabels } from './login-labels.ts';
import type { LoggedIn, LoginService } from './login-service.ts';

/** What a browser sent. */
export interface BrowserRequest {
  readonly cookieHeader: string | undefined;
  /** What the authenticator may know of it. */
  readonly login: LoginRequest;
}

/** Why a browser did not get through a login at an external provider. */
export type ExternalLoginFailureReason =
  | 'state_missing'
  | 'state_unknown'
  | 'state_used'
  | 'other_callback'
  | 'answer_missing'
  | 'unavailable'
  | 'cancelled'
  | 'refused'
  | 'link_session_ended'
  | 'link_refused'
  | 'confirm_session_ended'
  | 'confirm_other_user';

export interface ExternalLoginFailure {
  readonly outcome: 'failed';
  readonly reason: ExternalLoginFailureReason;
  readonly status: 403 | 401 | 429 | 503;
  /** Why, in a sentence for the visitor, where the provider or the login rules know more. */
  readonly message?: Phrase;
  /** The provider, as the login page calls it, and the request that failed; undefined without a valid state. */
  readonly provider?: Phrase;
  readonly request?: Pick<
    AuthorizationRequest,
    'authenticator' | 'next' | 'linkToSession' | 'confirmSession'
  >;
}

export type ExternalLoginBegun =
  | {
      readonly outcome: 'redirect';
      /** The provider's authorization endpoint, with all parameters. */
      readonly location: string;
      readonly provider: Phrase;
      readonly setCookies: readonly string[];
    }
  | ExternalLoginFailure;

export type ExternalLoginCompleted = (
  | { readonly outcome: 'logged_in'; readonly result: LoggedIn; readonly next: string | undefined }
  | { readonly outcome: 'linked'; readonly display: string }
  | {
      readonly outcome: 'confirmed';
      readonly result: LoggedIn;
      readonly request: Pick<AuthorizationRequest, 'next' | 'pendingForm'>;
    }
  | ExternalLoginFailure
) & { readonly setCookies: readonly string[] };

/** How a browser came back. */
export interface CallbackRequest {
  /** Name in the path of a callback of one authenticator's own; undefined at the one that all share. */
  readonly authenticator: string | undefined;
  /** The query, with its question mark. */
  readonly search: string;
}

/** Sends browsers to external providers (RFC 6749 §4.1.1) and takes them back. */
export interface ExternalLogins {
  /** Throws `not_found` when there is no external authenticator of this name. */
  begin(
    browser: BrowserRequest,
    wish: Omit<AuthorizationRequest, 'pending'>,
  ): Promise<ExternalLoginBegun>;
  /** `current` is the login of the browser. */
  complete(
    browser: BrowserRequest,
    callback: CallbackRequest,
    current: Login | undefined,
  ): Promise<ExternalLoginCompleted>;
}

const maxStateLength = 512;

export function createExternalLogins(deps: {
  readonly authenticators: Pick<Authenticators, 'find' | 'callbackUrlOf'>;
  readonly loginService: Pick<LoginService, 'concludeLogin'>;
  readonly linkIdentity: LinkIdentity;
  readonly requestStates: AuthorizationRequestStates;
  readonly publicUrl: URL;
  readonly log: Logger;
}): ExternalLogins {
  const { authenticators, loginService, requestStates, log } = deps;

  function getExternal(name: string): NamedAuthenticator<ExternalAuthenticator> {
    const authenticator = authenticators.find(name)?.authenticator;
    if (authenticator === undefined || !isExternal(authenticator)) {
      throw new HubError('not_found', text`There is no login provider of this name.`);
    }
    return { name, authenticator };
  }

  /** The request that the browser comes back from. */
  async function takeRequest({ cookieHeader }: BrowserRequest, query: URLSearchParams) {
    const [state = '', ...others] = query.getAll('state');
    const isUsable = state !== '' && state.length <= maxStateLength && others.length === 0;
    const taken = isUsable ? await requestStates.take(cookieHeader, state) : 'missing';
    if (typeof taken === 'object') return { outcome: 'taken', state, ...taken } as const;
    log.warn(
      { reason: logMessageForState[taken], errorCode: query.get('error')?.slice(0, 100) },
      'oauth callback without login',
    );
    return { outcome: 'failed', reason: `state_${taken}`, status: 403 } as const;
  }

  async function link(
    request: AuthorizationRequest,
    result: Parameters<LinkIdentity>[1],
    current: Login | undefined,
  ) {
    if (current === undefined || current.session.sessionId !== request.linkToSession) {
      return { outcome: 'failed', reason: 'link_session_ended', status: 403, request } as const;
    }
    const { authenticator } = request;
    const linked = await deps.linkIdentity(current.user, result, authenticator);
    const fields = { user: current.user.name, authenticator, outcome: linked.outcome };
    log.info(fields, 'identity link requested');
    if (linked.outcome === 'linked') return linked;
    const { message } = linked;
    return { outcome: 'failed', reason: 'link_refused', status: 403, message, request } as const;
  }

  /** The user who comes back must be the one whose login it is. */
  function confirm(request: AuthorizationRequest, result: LoggedIn, current: Login | undefined) {
    const failed = { outcome: 'failed', status: 403, request } as const;
    if (current === undefined || current.session.sessionId !== request.confirmSession) {
      return { ...failed, reason: 'confirm_session_ended' } as const;
    }
    if (result.user.id !== current.user.id) {
      return { ...failed, reason: 'confirm_other_user' } as const;
    }
    return { outcome: 'confirmed', result, request } as const;
  }

  async function finish(
    { login }: BrowserRequest,
    { search, authenticator }: CallbackRequest,
    { state, request }: { readonly state: string; readonly request: AuthorizationRequest },
    current: Login | undefined,
  ) {
    const via = getExternal(request.authenticator);
    const failed = {
      outcome: 'failed',
      provider: loginLabels(via.authenticator.login.label),
      request,
    } as const;
    const url = new URL(callbackUrlOf(deps.publicUrl, authenticator));
    // Before the code goes anywhere: it may be of another provider (mix-up, RFC 9700 §4.4).
    if (url.href !== authenticators.callbackUrlOf(via.name)) {
      const fields = { authenticator: via.name, callback: url.pathname.slice(0, 200) };
      log.warn(fields, 'oauth callback mismatch');
      return { outcome: 'failed', reason: 'other_callback', status: 403, request } as const;
    }
    const query = new URLSearchParams(search);
    if (!query.has('code') && !query.has('error')) {
      log.warn({ authenticator: via.name }, 'oauth callback without code');
      return { ...failed, reason: 'answer_missing', status: 403 } as const;
    }
    url.search = search;
    const result = await via.authenticator
      .completeLogin({ url, state, pending: request.pending }, login)
      .catch((error: unknown) => {
        log.warn({ err: error, authenticator: via.name }, 'provider failed during login');
        return undefined;
      });
    if (result === undefined) return { ...failed, reason: 'unavailable', status: 503 } as const;
    if (request.linkToSession !== undefined) return await link(request, result, current);
    const concluded = await loginService.concludeLogin(result, via.name);
    if (concluded.outcome === 'logged_in') {
      if (request.confirmSession !== undefined) return confirm(request, concluded, current);
      return { outcome: 'logged_in', result: concluded, next: request.next } as const;
    }
    const isCancelled = result.outcome === 'refused' && result.reason === 'cancelled';
    const { status, message } = concluded;
    return { ...failed, reason: isCancelled ? 'cancelled' : 'refused', status, message } as const;
  }

  return {
    async begin({ cookieHeader, login }, wish) {
      const via = getExternal(wish.authenticator);
      const provider = loginLabels(via.authenticator.login.label);
      const asksAgain = wish.confirmSession !== undefined;
      const started = await via.authenticator
        .beginLogin(login, { asksAgain })
        .catch((error: unknown) => {
          const fields = { err: error, authenticator: via.name };
          log.warn(fields, 'login could not begin at provider');
          return undefined;
        });
      if (started === undefined) {
        return { outcome: 'failed', reason: 'unavailable', status: 503, provider, request: wish };
      }
      const { location, state, pending } = started;
      const setCookies = requestStates.begin(cookieHeader, state, { ...wish, pending });
      return { outcome: 'redirect', location, provider, setCookies };
    },

    async complete(browser, callback, current) {
      const taken = await takeRequest(browser, new URLSearchParams(callback.search));
      if (taken.outcome === 'failed') return { ...taken, setCookies: [] };
      return { ...(await finish(browser, callback, taken, current)), setCookies: taken.setCookies };
    },
  };
}

const logMessageForState = {
  missing: 'the state parameter is missing or not a state',
  unknown: 'the state is not of a login begun in this browser, or that login took too long',
  used: 'the state was used before',
} as const;
