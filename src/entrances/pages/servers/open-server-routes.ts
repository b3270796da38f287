import type Router from '@koa/router';
import type { Context } from 'koa';
import type { Login } from '../../../identity/sessions/login-sessions.ts';
import { HubError } from '../../../platform/errors.ts';
import { addCookies } from '../../../platform/http/cookies.ts';
import { canonicalPath } from '../../../platform/http/request-address.ts';
import { text } from '../../../platform/texts/text.ts';
import type { ConsentCookies } from '../../../traffic/gateway/consent-cookies.ts';
import type { CrossOriginLogin } from '../../../traffic/gateway/cross-origin-login.ts';
import type { RouteAccess } from '../../../traffic/gateway/route-access.ts';
import { hasServerGuard, type ServerGuardRoute } from '../../../traffic/gateway/server-guard.ts';
import type { RouteTable } from '../../../traffic/proxy/route-table.ts';
import type { PageContext } from '../page-context.ts';
import { openServerPage } from './open-server-page.ts';
import { hasOpenedServer, noteOpenedServer } from './opened-servers.ts';

/** What a visitor is asked about. */
interface Asked {
  /** The page wanted, a path of that server. */
  readonly next: string;
  readonly route: ServerGuardRoute;
  /** Of the server guard that sent the browser; undefined where none did. */
  readonly state: string | undefined;
}

/** `/hub/open-server`, where a visitor is asked before the server guard lets them into another user's server. */
export function openServerRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly routes: Pick<RouteTable, 'match'>;
    readonly access: Pick<RouteAccess, 'isGranted'>;
    readonly consentCookies: Pick<ConsentCookies, 'yes'>;
    /** Undefined where the hub's cookies reach servers. */
    readonly crossOriginLogin: Pick<CrossOriginLogin, 'ticketUrl'> | undefined;
  },
): void {
  const { pages, routes, access, consentCookies, crossOriginLogin } = deps;

  function routeOf(next: string): ServerGuardRoute | undefined {
    const path = canonicalPath(next);
    const match = path && routes.match(path);
    return match?.kind === 'forward' && hasServerGuard(match.route) ? match.route : undefined;
  }

  /** Where a question is about; undefined where none is to be asked, and what else happens has been done. */
  async function askedFor(
    ctx: Context,
    login: Login,
    values: URLSearchParams,
  ): Promise<Asked | undefined> {
    const next = pages.nextOf(values);
    const state = values.get('state') ?? undefined;
    ctx.set('Cache-Control', 'no-store');
    if (next === undefined) {
      throw new HubError('bad_request', text`The address does not say which server to open.`);
    }
    const route = routeOf(next);
    const isOwn = route?.owner.userName === login.user.name;
    if (route === undefined) {
      goTo(ctx, next);
      return undefined;
    }
    if (isOwn) {
      leaveFor(ctx, login, { next, route, state }, false);
      return undefined;
    }
    if (!(await access.isGranted(await pages.callerOf(login), route.owner))) {
      throw new HubError('forbidden', text`You do not have permission to access this server.`, {
        hint: text`Ask its user or an administrator if you should have it.`,
      });
    }
    return { next, route, state };
  }

  function open(ctx: Context, login: Login, asked: Asked): void {
    noteOpenedServer(ctx, { id: asked.route.serverId });
    leaveFor(ctx, login, asked, true);
  }

  /** Back to the server guard, with what it needs to let the browser in. */
  function leaveFor(
    ctx: Context,
    { session: { sessionId } }: Login,
    { next, route, state }: Asked,
    isOpened: boolean,
  ): void {
    if (crossOriginLogin === undefined) {
      if (isOpened)
        addCookies(ctx, [
          consentCookies.yes(sessionId, { id: route.serverId, prefix: route.prefix }),
        ]);
      goTo(ctx, next);
    } else if (state === undefined) {
      // The server guard has not sent this browser, and will do so.
      goTo(ctx, next);
    } else {
      goTo(ctx, crossOriginLogin.ticketUrl(route, { sessionId, state, isOpened }));
    }
  }

  router.get(
    '/open-server',
    pages.loggedIn(async (ctx, login) => {
      const asked = await askedFor(ctx, login, new URLSearchParams(ctx.querystring));
      if (asked === undefined) return;
      const { next, route, state } = asked;
      if (hasOpenedServer(ctx, { id: route.serverId })) return open(ctx, login, asked);
      const { userName: ownerName, serverName } = route.owner;
      const layout = await pages.formLayoutFor(ctx);
      pages.send(ctx, openServerPage({ layout, ownerName, serverName, next, state }));
    }),
  );

  router.post(
    '/open-server',
    pages.loggedIn(async (ctx, login) => {
      const asked = await askedFor(ctx, login, await pages.readForm(ctx));
      if (asked !== undefined) open(ctx, login, asked);
    }),
  );
}

function goTo(ctx: Context, next: string): void {
  ctx.redirect(next);
  ctx.status = 303;
}
