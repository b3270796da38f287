import type { Keyv } from 'keyv';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { RecentLogin } from '../../../identity/accounts/recent-login.ts';
import type { ExternalLoginCompleted } from '../../../identity/authentication/external-logins.ts';
import type { Login, LoginSessions } from '../../../identity/sessions/login-sessions.ts';
import {
  authenticatedAtOf,
  type BrowserSessions,
  loginOf,
} from '../../../identity/sessions/session-middleware.ts';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { randomSecret } from '../../../platform/crypto/random.ts';
import { HubError } from '../../../platform/errors.ts';
import { safeRedirectTarget } from '../../../platform/http/redirect-target.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import { type ConfirmLoginView, confirmLoginPage, goOnPage } from './confirm-login-page.ts';
import type { LogIn } from './log-in.ts';
import { loginRequestOf } from './login-request.ts';
import type { PendingForm, PendingForms } from './pending-forms.ts';

/** Reads the form of a change; undefined once the page that asks for a confirmation has been sent. */
export type ReadForm = (
  ctx: Context,
  login: Login,
  /** Whether this change asks for a recent login at all. */
  isNeeded?: (form: URLSearchParams) => boolean,
) => Promise<URLSearchParams | undefined>;

/** Lets users show again who they are, before what outlives a stolen browser session. */
export interface ConfirmLogin {
  readonly readForm: ReadForm;
  /** A change that asks for a recent login. What was typed waits until the user has confirmed. */
  change(
    run: (ctx: Context, login: Login, form: URLSearchParams) => Promise<void>,
  ): (ctx: Context) => Promise<void>;
  /** Throws `recent_login_required` for a request by cookie whose user did not confirm lately. */
  require(ctx: Context): Promise<void>;
  isRecent(ctx: Context, login: Login): Promise<boolean>;
  /** Shows the page that asks, which leads on to `next`. Throws where only a new login helps. */
  ask(ctx: Context, login: Login, options: { readonly next: string | undefined }): Promise<void>;
  /** Checks what was typed there, or answers with the same page again. */
  check(ctx: Context, login: Login, form: URLSearchParams): Promise<boolean>;
  /** Keeps a form of the confirmation page while its user is elsewhere. */
  keepForm(login: Login, form: URLSearchParams): Promise<string | undefined>;
  /** Goes on when a user comes back from a login elsewhere. */
  goOn(
    ctx: Context,
    confirmed: Extract<ExternalLoginCompleted, { outcome: 'confirmed' }>,
  ): Promise<void>;
}

interface SavedForm {
  readonly keyHash: string;
  /** The sealed form. */
  readonly fields: Readonly<Record<string, string>>;
}

export function createConfirmLogin(deps: {
  readonly pages: PageContext;
  readonly recentLogin: RecentLogin;
  readonly sessions: Pick<BrowserSessions, 'confirm'>;
  readonly logins: Pick<LoginSessions, 'setUpstreamSession'>;
  readonly logIn: Pick<LogIn, 'knownBrowserFor'>;
  readonly pendingForms: PendingForms;
  /** Sealed forms whose users are elsewhere: the last one of each login. */
  readonly kept: Keyv<string>;
  readonly publicUrl: URL;
  readonly log: Logger;
}): ConfirmLogin {
  const { pages, recentLogin, sessions, pendingForms, kept, publicUrl, log } = deps;
  const { urls } = pages;

  const placeOf = ({ session }: Login) => hashSecret(session.sessionId);

  /** The form that was kept under a key, unless another one of this login has taken its place. */
  async function takeForm(
    login: Login,
    key: string | undefined,
  ): Promise<SavedForm['fields'] | undefined> {
    const text = key === undefined ? undefined : await kept.get(placeOf(login));
    if (key === undefined || text === undefined) return undefined;
    const waiting = JSON.parse(text) as SavedForm;
    if (waiting.keyHash !== hashSecret(key)) return undefined;
    await kept.delete(placeOf(login));
    return waiting.fields;
  }

  const isRecent: ConfirmLogin['isRecent'] = (ctx, login) =>
    recentLogin.isRecent(
      { ...login, authenticatedAt: authenticatedAtOf(ctx) },
      loginRequestOf(ctx),
    );

  async function confirm(ctx: Context, login: Login): Promise<void> {
    await sessions.confirm(ctx);
    log.info({ user: login.user.name }, 'login confirmed');
  }

  async function show(
    ctx: Context,
    login: Login,
    rest: Pick<ConfirmLoginView, 'action' | 'fields' | 'cancelUrl'> &
      Partial<Pick<ConfirmLoginView, 'problem' | 'waitSeconds' | 'typedName'>>,
  ): Promise<void> {
    const confirmation = await recentLogin.confirmationOf(login);
    if (confirmation.kind === 'none') throw onlyByNewLogin();
    const page = confirmLoginPage({
      layout: await pages.formLayoutFor(ctx),
      userName: login.user.name,
      confirmation,
      ...rest,
      ...(confirmation.kind === 'external' && { action: urls.confirmLogin() }),
    });
    if (rest.waitSeconds !== undefined) ctx.set('Retry-After', String(rest.waitSeconds));
    // A form that was not done says so to programs, too; the page by itself only asks.
    const status = ctx.method === 'GET' ? 200 : 403;
    pages.send(ctx, page, rest.waitSeconds === undefined ? status : 429);
  }

  /** Whether the fields of a confirmation are right; what is wrong else. */
  async function tryFields(ctx: Context, login: Login, sent: URLSearchParams) {
    const result = await recentLogin.check(login, new Map(sent), loginRequestOf(ctx), {
      knownBrowserFor: (userName) => deps.logIn.knownBrowserFor(ctx, userName),
    });
    if (result.outcome === 'confirmed') {
      await confirm(ctx, login);
      return undefined;
    }
    const { message: problem, retryAfterSeconds } = result;
    const typedName = sent.get('username') ?? undefined;
    return { problem, waitSeconds: retryAfterSeconds && Math.ceil(retryAfterSeconds), typedName };
  }

  const cameFrom = (ctx: Context) => safeRedirectTarget(ctx.get('Referer'), publicUrl) ?? urls.home;

  const readForm: ReadForm = async (ctx, login, isNeeded = () => true) => {
    const sent = await pages.readForm(ctx);
    const waiting = pendingForms.open(login, sent);
    if (waiting !== undefined && waiting.action !== ctx.path) throw noLongerValid();
    const form = waiting?.form ?? sent;
    if (!isNeeded(form) || (await isRecent(ctx, login))) return form;
    const { kind } = await recentLogin.confirmationOf(login);
    const wrong =
      waiting === undefined || kind === 'external' ? {} : await tryFields(ctx, login, sent);
    if (wrong === undefined) return form;
    const asked: PendingForm = waiting ?? { action: ctx.path, form, cancelUrl: cameFrom(ctx) };
    const { action, cancelUrl } = asked;
    await show(ctx, login, {
      action,
      cancelUrl,
      fields: pendingForms.seal(login, asked),
      ...wrong,
    });
    return undefined;
  };

  return {
    readForm,
    isRecent,

    change: (run) =>
      pages.loggedIn(async (ctx, login) => {
        const form = await readForm(ctx, login);
        if (form !== undefined) await run(ctx, login, form);
      }),

    async require(ctx) {
      const login = loginOf(ctx);
      if (login === undefined || (await isRecent(ctx, login))) return;
      const { kind } = await recentLogin.confirmationOf(login);
      if (kind === 'none') throw onlyByNewLogin();
      const url = new URL(urls.confirmLogin(), publicUrl).href;
      throw new HubError('recent_login_required', text`Confirm first that it is you.`, {
        hint: text`Open ${url} in this browser, then try again; or send an API token.`,
        details: { confirm_url: url },
      });
    },

    ask: (ctx, login, { next }) =>
      show(ctx, login, { action: urls.confirmLogin(), fields: { next }, cancelUrl: cameFrom(ctx) }),

    async check(ctx, login, form) {
      const wrong = await tryFields(ctx, login, form);
      if (wrong === undefined) return true;
      const fields = { next: pages.nextOf(form) };
      await show(ctx, login, {
        action: urls.confirmLogin(),
        fields,
        cancelUrl: urls.home,
        ...wrong,
      });
      return false;
    },

    async keepForm(login, sent) {
      const waiting = pendingForms.open(login, sent);
      if (waiting === undefined) return undefined;
      const key = randomSecret();
      const fields = pendingForms.seal(login, waiting);
      await kept.set(
        placeOf(login),
        JSON.stringify({ keyHash: hashSecret(key), fields }),
        pendingForms.lifetimeMs,
      );
      return key;
    },

    async goOn(ctx, { result, request }) {
      const login = loginOf(ctx);
      if (login === undefined) return pages.redirectToLogin(ctx);
      const { sessionId, identityId } = login.session;
      const fields = await takeForm(login, request.pendingForm);
      await confirm(ctx, login);
      // The end of this session at the provider must end the login, as that of the former one did.
      if (result.identityId === identityId) await deps.logins.setUpstreamSession(sessionId, result);
      if (fields === undefined) return ctx.redirect(request.next ?? urls.home);
      const waiting = pendingForms.open(login, new URLSearchParams(fields));
      if (waiting === undefined) throw noLongerValid();
      const { action, cancelUrl } = waiting;
      const layout = await pages.formLayoutFor(ctx);
      pages.send(ctx, goOnPage({ layout, action, fields, cancelUrl }));
    },
  };
}

function onlyByNewLogin(): HubError {
  return new HubError('recent_login_required', text`Your login is too old for this.`, {
    hint: text`Log out and log in again.`,
  });
}

function noLongerValid(): HubError {
  return new HubError('bad_request', text`This form has waited too long.`, {
    hint: text`Go back and fill it in again.`,
  });
}
