import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import { type DooredRoute, hasDoor } from '../../gateway/door.ts';
import type { DoorAnswers } from '../../gateway/door-answers.ts';
import type { RouteAccess } from '../../gateway/route-access.ts';
import { canonicalPath } from '../../http/canonical-path.ts';
import { addCookies } from '../../http/set-cookie.ts';
import type { RouteTable } from '../../proxy/route-table.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import type { PageContext } from '../page-context.ts';
import { openServerPage } from './open-server-page.ts';
import { hasOpenedServer, noteOpenedServer } from './opened-servers.ts';

/** `/hub/open-server`, where a visitor is asked before the door lets them into the server of somebody else. */
export function openServerRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly routes: Pick<RouteTable, 'match'>;
    readonly access: Pick<RouteAccess, 'isGranted'>;
    readonly doorAnswers: Pick<DoorAnswers, 'yes'>;
  },
): void {
  const { pages, routes, access, doorAnswers } = deps;

  function routeOf(next: string): DooredRoute | undefined {
    const path = canonicalPath(next);
    const match = path && routes.match(path);
    return match?.kind === 'forward' && hasDoor(match.route) ? match.route : undefined;
  }

  /** Where a question is about; undefined where none is to be asked, and what else happens has been done. */
  async function askedFor(
    ctx: Context,
    login: Login,
    next: string | undefined,
  ): Promise<{ readonly next: string; readonly route: DooredRoute } | undefined> {
    ctx.set('Cache-Control', 'no-store');
    if (next === undefined) {
      throw new HubError('bad_request', 'The address does not say which server to open.');
    }
    const route = routeOf(next);
    const isOwn = route?.owner.userName === login.user.name;
    if (route === undefined || isOwn) {
      goTo(ctx, next);
      return undefined;
    }
    if (!(await access.isGranted(await pages.callerOf(login), route.owner))) {
      throw new HubError('forbidden', 'You do not have permission to access this server.', {
        hint: 'Ask its user or an administrator if you should have it.',
      });
    }
    return { next, route };
  }

  function open(ctx: Context, { session }: Login, route: DooredRoute, next: string): void {
    noteOpenedServer(ctx, route.prefix);
    addCookies(ctx, [doorAnswers.yes(session.sessionId, route)]);
    goTo(ctx, next);
  }

  router.get(
    '/open-server',
    pages.loggedIn(async (ctx, login) => {
      const asked = await askedFor(ctx, login, pages.nextOf(new URLSearchParams(ctx.querystring)));
      if (asked === undefined) return;
      const { next, route } = asked;
      if (hasOpenedServer(ctx, route.prefix)) return open(ctx, login, route, next);
      const { userName: ownerName, serverName } = route.owner;
      const layout = await pages.formLayoutFor(ctx);
      pages.send(ctx, openServerPage({ layout, ownerName, serverName, next }));
    }),
  );

  router.post(
    '/open-server',
    pages.loggedIn(async (ctx, login) => {
      const asked = await askedFor(ctx, login, pages.nextOf(await pages.readForm(ctx)));
      if (asked !== undefined) open(ctx, login, asked.route, asked.next);
    }),
  );
}

function goTo(ctx: Context, next: string): void {
  ctx.redirect(next);
  ctx.status = 303;
}
