import type { Context } from 'koa';
import { callerOfLogin } from '../../identity/authentication/user-refresh.ts';
import { type Caller, mayAccess } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { Membership } from '../../identity/rbac/membership.ts';
import { type CsrfProtection, isFromScript, isSameOrigin } from '../../identity/sessions/csrf.ts';
import type { Login } from '../../identity/sessions/login-sessions.ts';
import { loginOf } from '../../identity/sessions/session-middleware.ts';
import type { UserInfoStore } from '../../identity/users/user-info-store.ts';
import { type OperationId, operationOf } from '../../operations/operations.ts';
import { isAuthorised } from '../../operations/perform.ts';
import type { CurrentBranding } from '../../platform/branding/branding.ts';
import { HubError } from '../../platform/errors.ts';
import { readFormBody } from '../../platform/http/body.ts';
import type { Origins } from '../../platform/http/origins.ts';
import { safeRedirectTarget } from '../../platform/http/redirect-target.ts';
import { savedInputCookie } from '../../platform/protocol/cookie-names.ts';
import type { Language } from '../../platform/texts/language.ts';
import type { Languages } from '../../platform/texts/languages.ts';
import {
  localizedPhrase,
  readPhrase,
  type SavedPhrase,
  savePhrase,
  type Text,
  text,
} from '../../platform/texts/text.ts';
import type { Announcements } from './announcements.ts';
import type { AssetUrls } from './assets/assets.ts';
import { openedBy } from './elements/admin-link.ts';
import type {
  AdminTab,
  FormLayoutProps,
  LayoutProps,
  OfferedLanguage,
  PageNotice,
} from './elements/layout-props.ts';
import { fillIn } from './fill-in.ts';
import { type Html, renderHtml } from './html.ts';
import type { PageUrls } from './page-urls.ts';
import { languageOf, readPreferences } from './preferences.ts';
import type { Input, SavedInput } from './saved-input.ts';

/** What the first page of each part shows. */
const viewByTab = {
  overview: 'viewOverview',
  users: 'viewUsers',
  groups: 'viewGroups',
  roles: 'viewRoles',
  servers: 'viewServers',
  services: 'viewServices',
  usage: 'viewUsage',
  instances: 'viewInstances',
  lockouts: 'viewLockouts',
  keys: 'viewSigningKeys',
  announcements: 'viewNotices',
  activity: 'viewActivity',
} as const satisfies Record<AdminTab, OperationId>;

/** The parts of the administration that a caller may see something of, in their order. */
export function adminTabsOf(caller: Caller, membership: Membership): AdminTab[] {
  return (Object.keys(viewByTab) as AdminTab[]).filter((tab) =>
    isAuthorised(operationOf(viewByTab[tab]), {}, caller, membership),
  );
}

/** What every page route needs: the layout, forms that are safe, and who is logged in. */
export interface PageContext {
  readonly urls: PageUrls;
  /** A path as browsers are sent there: absolute for that of a server or service with its own origin. */
  urlOf(path: string): string;
  layoutFor(ctx: Context): Promise<LayoutProps>;
  formLayoutFor(ctx: Context): Promise<FormLayoutProps>;
  /** In which the browser is answered. */
  languageOf(ctx: Context): Language;
  /** Answers with a page in the language of its reader. */
  send(ctx: Context, page: Html, status?: number): void;
  /**
   * Reads a submitted form. Throws `csrf_failed` unless the hub made it for this browser, or it is one that others may send
   * since nothing is done by it.
   */
  readForm(
    ctx: Context,
    mayBeForeign?: (form: URLSearchParams) => boolean,
  ): Promise<URLSearchParams>;
  /**
   * Shows a notice on the next page and goes there (303); where the form stood on that page, to the same place of it:
   * its page of a list, its search.
   */
  redirectWithNotice(ctx: Context, url: string, notice: PageNotice & { readonly text: Text }): void;
  /** The checked `next` of a query or form; undefined when it leads elsewhere. */
  nextOf(values: URLSearchParams): string | undefined;
  /** The path of an address on the hub's own origin; undefined for any other. */
  ownPathOf(address: string): string | undefined;
  /** Sends a browser to log in and back here, or to another page of the hub. */
  redirectToLogin(ctx: Context, url?: string): void;
  /**
   * What was typed into the form that is sent to `action` when the login had ended, for a page that shows more of it than
   * stands on the page by itself, and fills it in on its own. Nothing else may be done with it.
   */
  takeTyped(ctx: Context, action: string): URLSearchParams | undefined;
  /** Whether something was typed that is still to be filled in. */
  hasTyped(ctx: Context): boolean;
  /**
   * Shows a page to a user who is logged in only; others are sent to log in first. What they have typed into a form
   * stands there again afterwards, also when they have logged in meanwhile in another window.
   */
  loggedIn(page: (ctx: Context, login: Login) => Promise<void>): (ctx: Context) => Promise<void>;
  /** What the person may do, as the API sees a caller. */
  callerOf(login: Login): Promise<Caller>;
}

export function createPageContext(deps: {
  readonly urls: PageUrls;
  readonly assets: AssetUrls;
  readonly languages: Languages;
  readonly branding: CurrentBranding;
  readonly publicUrl: URL;
  readonly origins: Origins;
  readonly csrf: CsrfProtection;
  readonly savedInput: SavedInput;
  readonly authorizer: Authorizer;
  readonly userInfo: Pick<UserInfoStore, 'of'>;
  readonly announcements: Pick<Announcements, 'at'>;
  readonly formLimitBytes: number;
}): PageContext {
  const {
    urls,
    assets,
    branding,
    publicUrl,
    origins,
    csrf,
    authorizer,
    announcements,
    savedInput,
  } = deps;

  function offeredLanguages(ctx: Context): OfferedLanguage[] {
    const { tag: current } = pages.languageOf(ctx);
    const offered = deps.languages.all.map(({ tag, name }) => ({
      tag,
      name,
      isCurrent: tag === current,
    }));
    return offered.sort((one, other) => one.name.localeCompare(other.name));
  }

  async function layoutFor(ctx: Context): Promise<LayoutProps> {
    const login = loginOf(ctx);
    const base = {
      hubTitle: localizedPhrase(branding.current.title),
      urls,
      assets,
      branding,
      now: new Date(),
      languages: offeredLanguages(ctx),
      theme: readPreferences(ctx.req.headers.cookie).theme,
      address: ctx.method === 'GET' ? ctx.originalUrl : undefined,
      announcements: await announcements.at(ctx.path),
      requestId: ctx.state['requestId'] as string,
    };
    if (login === undefined) return base;
    const caller = await pages.callerOf(login);
    const membership = await authorizer.membershipFor(caller.scopes);
    const mayAdminister = mayAccess(caller.scopes, 'admin-ui', undefined, membership);
    return {
      ...base,
      mayOpen: mayAdminister ? openedBy(caller, membership) : () => false,
      user: {
        name: login.user.name,
        displayName: (await deps.userInfo.of(login.user.id)).displayName,
        mayAdminister,
        adminTabs: mayAdminister ? adminTabsOf(caller, membership) : [],
      },
      csrfToken: csrf.token(ctx),
      notice: takeNotice(ctx),
    };
  }

  /** The page that the form was on, with its query, where an address leads there. */
  function placeOf(ctx: Context, url: string): string {
    const formPage = safeRedirectTarget(ctx.get('Referer'), publicUrl);
    const [path = '', ...section] = url.split('#');
    return formPage?.split('?', 1)[0] === path ? [formPage, ...section].join('#') : url;
  }

  async function showWithInput(
    ctx: Context,
    { user }: Login,
    show: () => Promise<void>,
  ): Promise<void> {
    const mayHaveInput = ctx.req.headers.cookie?.includes(savedInputCookie) && !isFromScript(ctx);
    const input = mayHaveInput ? await savedInput.take(ctx, user.id) : undefined;
    if (input === undefined) return show();
    const kept = text`You had been logged out. What you typed is here again: send it once more.`;
    ctx['session'].notice ??= { kind: 'warn', text: savePhrase(kept) };
    ctx.state['savedInput'] = input;
    await show();
    if (pages.hasTyped(ctx) && typeof ctx.body === 'string')
      ctx.body = await fillIn(ctx.body, input.action, input.form);
  }

  /** A form of a page from before the last login shows what was typed again, too. */
  async function act(ctx: Context, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      const form = ctx.state['refusedForm'] as URLSearchParams | undefined;
      const address = form && (await savedInput.keep(ctx, form));
      if (address === undefined) throw error;
      ctx.redirect(address);
      ctx.status = 303;
    }
  }

  const pages: PageContext = {
    urls,
    languageOf: (ctx) => languageOf(deps.languages, ctx.req.headers, ctx.originalUrl),
    urlOf: origins.urlOf,
    layoutFor,
    formLayoutFor: async (ctx) => ({ ...(await layoutFor(ctx)), csrfToken: csrf.token(ctx) }),

    send(ctx, page, status = 200) {
      ctx.status = status;
      ctx.type = 'text/html; charset=utf-8';
      ctx.body = renderHtml(page, pages.languageOf(ctx));
    },

    async readForm(ctx, mayBeForeign) {
      const form = await readFormBody(ctx.req, deps.formLimitBytes);
      const token = form.get('_csrf') ?? undefined;
      if (token === undefined && mayBeForeign?.(form)) return form;
      try {
        csrf.require(ctx, token);
      } catch (error) {
        const user = loginOf(ctx)?.user;
        const proof = token && csrf.readerProofIn(token);
        const isOwn = user !== undefined && proof !== undefined && csrf.isReader(user.id, proof);
        if (isOwn && isSameOrigin(ctx, publicUrl)) ctx.state['refusedForm'] = form;
        throw error;
      }
      return form;
    },

    redirectWithNotice(ctx, url, { kind, text: phrase }) {
      if (loginOf(ctx) !== undefined && ctx['session']) {
        ctx['session'].notice = { kind, text: savePhrase(phrase, pages.languageOf(ctx)) };
      }
      ctx.redirect(placeOf(ctx, url));
      ctx.status = 303;
    },

    nextOf: (values) => safeRedirectTarget(values.get('next') ?? undefined, publicUrl, origins),

    ownPathOf: (address) => safeRedirectTarget(address, publicUrl),

    redirectToLogin(ctx, url = ctx.originalUrl) {
      const next = safeRedirectTarget(url, publicUrl);
      ctx.redirect(next === undefined ? urls.login : urls.loginThen(next));
      if (ctx.method === 'POST') ctx.status = 303;
    },

    hasTyped: (ctx) => ctx.state['savedInput'] !== undefined,

    takeTyped(ctx, action) {
      const input = ctx.state['savedInput'] as Input | undefined;
      if (input?.action !== action) return undefined;
      delete ctx.state['savedInput'];
      return input.form;
    },

    loggedIn: (page) => async (ctx) => {
      const login = loginOf(ctx);
      const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
      if (login !== undefined && isRead) return showWithInput(ctx, login, () => page(ctx, login));
      if (login !== undefined) return act(ctx, () => page(ctx, login));
      if (isRead) return pages.redirectToLogin(ctx);
      const form = isSameOrigin(ctx, publicUrl)
        ? await readFormBody(ctx.req, deps.formLimitBytes)
        : undefined;
      const address = form && (await savedInput.keep(ctx, form));
      if (address !== undefined) return pages.redirectToLogin(ctx, address);
      throw new HubError('forbidden', text`You are no longer logged in.`, {
        hint: text`Log in and try again.`,
      });
    },

    callerOf: (login) => callerOfLogin(login, authorizer),
  };
  return pages;
}

type SavedNotice = Pick<PageNotice, 'kind'> & { readonly text: SavedPhrase };

/** The notice left by the page before, once. A script that asks meanwhile would take it and show it to nobody. */
function takeNotice(ctx: Context): PageNotice | undefined {
  if (isFromScript(ctx)) return undefined;
  const session = ctx['session'] as { notice?: SavedNotice } | null;
  const notice = session?.notice;
  if (notice !== undefined && session !== null) delete session.notice;
  return notice && { ...notice, text: readPhrase(notice.text) };
}
