import type Router from '@koa/router';
import type { RouteTable } from '../proxy/route-table.ts';
import type { Authority } from '../rbac/authority.ts';
import { requireScopes } from './require-scopes.ts';

/** `GET /proxy`: the proxy table. */
export function proxyRoutes(
  router: Router,
  parts: { readonly routes: RouteTable; readonly authority: Authority },
): void {
  router.get('/proxy', async (ctx) => {
    requireScopes(ctx, ['proxy'], await parts.authority.membership());
    ctx.body = Object.fromEntries(
      parts.routes.list().map((route) => [
        route.prefix,
        {
          routespec: route.prefix,
          target: route.target,
          access: route.access,
          ready: route.isReady,
          last_activity: new Date(route.lastActivityMs).toISOString(),
          data: route.owner,
        },
      ]),
    );
  });
}
