import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { HubError } from '../../../platform/errors.ts';
import { readFormBody } from '../../../platform/http/body.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { User } from '../../users/user-store.ts';
import type { Client } from '../clients/client.ts';
import { keepShown, resolveClientScopes, type ScopeDecision } from '../clients/client-access.ts';
import { isLoopbackUri } from '../clients/redirect-uri.ts';
import { OAuthError } from '../oauth-error.ts';
import { authorizationErrorUrl, authorizationResponseUrl } from '../oauth-error-response.ts';
import type { OpenidRequest } from '../openid/openid-request.ts';
import { coversScopes, requiredScopes, type ScopeContext } from '../requested-scopes.ts';
import type { AccessTokenStore } from '../tokens/access-token-store.ts';
import type { AuthorizationCodeStore } from '../tokens/authorization-code-store.ts';
import {
  type AuthorizationRequest,
  type AuthorizationRequestContext,
  type AuthorizationRequestReading,
  isAgent,
  readAuthorizationRequest,
} from './authorization-request.ts';
import { type ConsentView, consentView } from './consent-view.ts';
import type { CountRefusal } from './json-endpoint.ts';
import type { OpenedRequest, PushedRequests } from './pushed-requests.ts';

/** Who is at the browser, and in which of their sessions. */
export interface CurrentLogin {
  readonly user: User;
  readonly sessionId: string;
  /** When the user last showed who they are, as far as the browser's record says. */
  readonly authenticatedAt?: Date | undefined;
  readonly acr?: string | undefined;
}

/** What the authorization endpoint is made from. */
export interface AuthorizationEndpointDeps extends AuthorizationRequestContext, ScopeDecision {
  readonly authorizationCodes: Pick<AuthorizationCodeStore, 'create'>;
  readonly accessTokens: Pick<AccessTokenStore, 'listOfClientAndUser'>;
  readonly currentLogin: (ctx: Context) => Promise<CurrentLogin | undefined>;
  /** Leads back to `url`, path and query. */
  readonly redirectToLogin: (ctx: Context, url: string) => void | Promise<void>;
  /**
   * Answers with the page on which users show again who they are, which leads back to `url`. Throws
   * `recent_login_required` where there is none.
   */
  readonly confirmLogin: (ctx: Context, url: string) => Promise<void>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Answers with the page; its form posts `decision=allow` or `deny` to the same URL. */
  readonly showConsent: (ctx: Context, view: ConsentView) => void | Promise<void>;
  /** What a service is called on pages. */
  readonly titleOfService: (name: string) => Phrase | undefined;
  /** Whether the user has said in this login that they want to open the server of a client. */
  readonly hasOpened: (ctx: Context, client: Client) => boolean;
  /** Throws `csrf_failed` unless the form was made by the hub for this browser. */
  readonly requireCsrf: (ctx: Context, form: URLSearchParams) => void | Promise<void>;
  readonly pushedRequests: Pick<PushedRequests, 'open'>;
  readonly countRefusal: CountRefusal;
  readonly log: Logger;
}

interface Authorization {
  readonly opened: OpenedRequest;
  readonly request: AuthorizationRequest;
  readonly login: CurrentLogin;
  readonly scopes: readonly string[];
  readonly scopeContext: ScopeContext;
}

const formLimitBytes = 16 * 1024;

/** The authorization endpoint (RFC 6749 §3.1): `show` answers GET, `decide` the consent form. */
export function createAuthorizationEndpoint(deps: AuthorizationEndpointDeps): {
  readonly show: Middleware;
  readonly decide: Middleware;
} {
  const { authorizationCodes, accessTokens, log } = deps;

  const show = async (ctx: Context): Promise<void> => {
    await answer(ctx, async (authorization) => {
      const { prompts = noPrompts } = authorization.request.openid ?? {};
      const isAsked = prompts.has('consent') || prompts.has('select_account');
      if (!isAsked && (await maySkipConsent(ctx, authorization))) await allow(ctx, authorization);
      else if (prompts.has('none'))
        throw new OAuthError('consent_required', 'The user has not consented to this yet.');
      else await deps.showConsent(ctx, consentViewOf(authorization));
    });
  };

  const decide = async (ctx: Context): Promise<void> => {
    const form = await readFormBody(ctx.req, formLimitBytes);
    // The request itself may come by POST (OpenID Connect Core 1.0 §3.1.2.1), from another site without the login's cookie.
    if (ctx.querystring === '' && form.has('client_id') && !form.has('decision')) {
      ctx.set('Cache-Control', 'no-store');
      return redirect(ctx, `${ctx.path}?${form}`);
    }
    // The request is checked again from its URL: the form only says what the person decided.
    await answer(ctx, async (authorization) => {
      await deps.requireCsrf(ctx, form);
      const decision = form.get('decision');
      if (decision === 'allow') {
        const { scopes, request } = authorization;
        // Scopes that the form names never add anything; one that names none shows all.
        const kept = keepShown(scopes, form.getAll('scopes'), request.client);
        return await allow(ctx, { ...authorization, scopes: kept });
      }
      if (decision === 'deny')
        throw new OAuthError('access_denied', 'The user denied the request.');
      throw new HubError('bad_request', text`The form does not say whether to allow or to deny.`);
    });
  };

  /** Runs every check of an authorization request, then lets `act` finish it. */
  async function answer(
    ctx: Context,
    act: (authorization: Authorization) => Promise<void>,
  ): Promise<void> {
    ctx.set('Cache-Control', 'no-store');
    const opened = await deps.pushedRequests.open(new URLSearchParams(ctx.querystring));
    const login = await deps.currentLogin(ctx);
    const backFromLogin = () => opened.answeredUrl(ctx.originalUrl);
    // Anybody can name the URL of a document: it is read for those alone who may use what is asked for.
    if (login === undefined && (await isAgent(opened.parameters, deps)))
      return await deps.redirectToLogin(ctx, await backFromLogin());
    const read = await readAuthorizationRequest(opened.parameters, deps, login?.user.id);
    const { request, refused } = opened.isPushed ? read : refuseUnpushed(read);
    if (refused !== undefined) {
      deps.countRefusal(refused.error.error);
      await opened.end();
      return redirect(ctx, authorizationErrorUrl(refused.target, refused.error));
    }
    const isSilent = request.openid?.prompts.has('none') === true;
    if (login === undefined && !isSilent) {
      return await deps.redirectToLogin(ctx, await backFromLogin());
    }
    try {
      if (login === undefined) throw loginRequired();
      if (request.openid !== undefined && !meets(login, request.openid)) {
        if (isSilent) throw loginRequired();
        return await deps.confirmLogin(ctx, await backFromLogin());
      }
      await act({ ...(await authorize(request, login)), opened });
    } catch (thrown) {
      const error = request.openid === undefined ? thrown : asOAuthError(thrown, isSilent);
      if (!(error instanceof OAuthError)) throw error;
      deps.countRefusal(error.error);
      log.info(
        { client: request.client.clientId, user: login?.user.name, error: error.error },
        'authorization refused',
      );
      await opened.end();
      redirect(ctx, authorizationErrorUrl(request.target, error));
    }
  }

  /** Whether a login is recent enough. Throws where only another one would do. */
  function meets(
    { user, authenticatedAt, acr }: CurrentLogin,
    { prompts, maxAgeSeconds, subjects, acrValues }: OpenidRequest,
  ): boolean {
    if (subjects.some((subject) => subject !== user.id)) throw loginRequired();
    if (acrValues.length > 0 && !acrValues.includes(acr ?? '')) {
      throw new OAuthError('interaction_required', 'The login is not as strong as acr asks for.');
    }
    const ageMs = deps.now() - (authenticatedAt?.getTime() ?? Number.NEGATIVE_INFINITY);
    return !prompts.has('login') && !(maxAgeSeconds !== undefined && ageMs >= maxAgeSeconds * 1000);
  }

  async function authorize(
    request: AuthorizationRequest,
    login: CurrentLogin,
  ): Promise<Omit<Authorization, 'opened'>> {
    const { client, scope, openid, resource } = request;
    const asked = { scope, claims: openid?.claims, resource };
    const resolved = await resolveClientScopes(client, login.user.name, asked, deps);
    return { request, login, ...resolved };
  }

  async function maySkipConsent(
    ctx: Context,
    { request: { client, target }, login: { user }, scopes, scopeContext }: Authorization,
  ): Promise<boolean> {
    // Any app of the device may be the one that listens there, and say it is this client (RFC 8252 §8.6).
    if (client.isPublic && isLoopbackUri(target.redirectUri)) return false;
    if (client.ownerUserName === user.name || client.skipsConsent) return true;
    // That question was about opening the server, which takes no more than this.
    const isOpened = deps.hasOpened(ctx, client);
    if (isOpened && coversScopes(requiredScopes(client), scopes, scopeContext)) return true;
    const tokens = await accessTokens.listOfClientAndUser(client.clientId, user.id);
    if (tokens.length === 0) return false;
    const granted = tokens.flatMap((token) => token.scopes);
    return coversScopes(granted, scopes, scopeContext);
  }

  function consentViewOf({ request, scopes, scopeContext }: Authorization): ConsentView {
    const { target } = request;
    const { titleOfService } = deps;
    return consentView({ target, scopes, context: scopeContext, titleOfService });
  }

  async function allow(ctx: Context, authorization: Authorization): Promise<void> {
    const { opened, request, login, scopes } = authorization;
    const { client, redirectUri, scope: requestedScope, codeChallenge, nonce, target } = request;
    const code = await authorizationCodes.create({
      clientId: client.clientId,
      userId: login.user.id,
      sessionId: login.sessionId,
      redirectUri,
      scopes,
      requestedScope,
      codeChallenge,
      nonce,
      authenticatedAt: login.authenticatedAt,
    });
    log.info({ client: client.clientId, user: login.user.name, scopes }, 'authorization granted');
    await opened.end();
    redirect(ctx, authorizationResponseUrl(target, code));
  }

  return { show, decide };
}

/** RFC 9126 §6: a client may have to push what it asks. */
function refuseUnpushed(read: AuthorizationRequestReading): AuthorizationRequestReading {
  if (read.request?.client.requiresPush !== true) return read;
  const error = new OAuthError('invalid_request', 'The client has to push its requests.');
  return { refused: { target: read.request.target, error } };
}

const noPrompts: OpenidRequest['prompts'] = new Set();

const loginRequired = () => new OAuthError('login_required', 'The user must log in.');

/** What the client hears in place of a page: where none may be shown, or none would help. */
function asOAuthError(error: unknown, isSilent: boolean): unknown {
  if (!(error instanceof HubError)) return error;
  if (error.code === 'recent_login_required') return loginRequired();
  if (!isSilent || error.code !== 'forbidden') return error;
  return new OAuthError('access_denied', 'The user may not use this client.');
}

/** Redirects with 302: after a POST a browser changes to GET, so the form is not sent along. */
function redirect(ctx: Context, location: string): void {
  ctx.status = 302;
  // Not ctx.redirect: it rewrites the URL, and the redirect URI must stay as registered.
  ctx.set('Location', location);
  ctx.body = '';
}
