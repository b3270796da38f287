import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../../../platform/errors.ts';
import { isNavigation, prefersHtml } from '../../../platform/http/content-negotiation.ts';
import { exactTime, text } from '../../../platform/texts/text.ts';
import { serverNameAt } from '../../../traffic/gateway/find-resource.ts';
import { type Server, unreachableSince } from '../../../workloads/servers/server.ts';
import type { ServerLifecycle } from '../../../workloads/servers/server-lifecycle.ts';
import type { ServerStore } from '../../../workloads/servers/server-store.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';
import type { BoundPages } from '../forms/binding.ts';
import type { PageContext } from '../page-context.ts';
import { createCallStopped } from './call-stopped.ts';
import { type StandingDeps, showStanding } from './standing.ts';

/**
 * `/user/<name>/…` while no server answers there: 424 with JSON for programs but for those that may start it;
 * browsers are sent to the same address below `/hub/`, a page with a start button. And `/hub/user-redirect/<path>`, the same
 * path in one's own server.
 */
export function userUrlRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly basePath: string;
    readonly serverStore: Pick<ServerStore, 'find'>;
    readonly servers: Pick<UserServers, 'prefixOf' | 'launchedName'>;
    readonly lifecycle: Pick<ServerLifecycle, 'reaches'>;
  } & Parameters<typeof createCallStopped>[0],
): void {
  const { pages, serverStore: store, servers, lifecycle, basePath } = deps;
  const hubPath = pages.urls.hub;
  const callStopped = createCallStopped(deps);

  const answerStopped = async (ctx: Context): Promise<void> => {
    if (!isNavigation(ctx.method, ctx.req.headers) && !prefersHtml(ctx.req.headers)) {
      const userName = String(ctx['params']['user']);
      const serverName = await serverAt(ctx, userName, store);
      const server = await store.find(userName, serverName);
      const isLed = server !== undefined && (await isLedTo(server, ctx.originalUrl));
      const called = isLed ? 'ready' : await callStopped(ctx, { userName, serverName });
      if (called === 'answered') return;
      if (called === 'ready') {
        ctx.redirect(ctx.originalUrl);
        // The same request once more, with its method and body (RFC 9110, section 15.4.8).
        ctx.status = 307;
        return;
      }
      throw notRunning(userName, await store.find(userName, serverName));
    }
    // The login cookie is confined to the pages of the hub, so only there it is clear who asks.
    const asked = ctx.originalUrl.slice(basePath.length);
    // As the address of a server itself ends.
    const path = ctx['params']['rest'] === undefined ? asked.replace(/\/?(?=\?|$)/, '/') : asked;
    ctx.redirect(hubPath + path);
    ctx.status = 303;
  };

  /** Whether the same request leads to the server now: another instance may have made it ready just before. */
  async function isLedTo(server: Server, url: string): Promise<boolean> {
    if (server.state !== 'running' || unreachableSince(server) !== undefined) return false;
    // Written in another way, or on the host of another, it would lead back to here.
    const isItsOwn = url.startsWith(servers.prefixOf(server)) && pages.urlOf(url) === url;
    return isItsOwn && (await lifecycle.reaches(server));
  }

  function notRunning(userName: string, server: Server | undefined): HubError {
    const since = server && unreachableSince(server);
    if (since !== undefined) {
      return new HubError('unavailable', text`The server cannot be reached at the moment.`, {
        hint: text`Contact with the machine it runs on was lost at ${exactTime(since)}; it comes back with it.`,
        details: {
          user: userName,
          server: server?.name ?? '',
          unreachable_since: since.toISOString(),
        },
      });
    }
    const isComing = server?.state === 'starting';
    return new HubError(
      'server_not_running',
      isComing ? text`The server is starting.` : text`The server is not running.`,
      {
        hint: isComing
          ? text`Try again in a moment.`
          : text`Start it at ${pages.urls.spawn(userName, server?.name)}.`,
        ...(isComing ? { retryAfterSeconds: 2 } : {}),
        details: { user: userName, server: server?.name ?? '' },
      },
    );
  }

  router.all(`${basePath}user/:user{/*rest}`, answerStopped);

  router.get(
    `${hubPath}user-redirect{/*rest}`,
    pages.loggedIn(async (ctx, login) => {
      const rest = ctx.path.slice(`${hubPath}user-redirect/`.length);
      const { name: userName } = login.user;
      const name = servers.launchedName;
      const target = servers.prefixOf({ userName, name }) + rest + ctx.search;
      const server = await store.find(userName, name);
      if (server?.state === 'running') ctx.redirect(target);
      else ctx.redirect(`${pages.urls.spawn(userName, name)}?next=${encodeURIComponent(target)}`);
    }),
  );
}

/** `/hub/user/{name}/…`: where a server stands whose own address a browser asked for. */
export function stoppedServerRoutes(
  { page, pages }: BoundPages,
  deps: StandingDeps & {
    readonly basePath: string;
    readonly serverStore: Pick<ServerStore, 'find'>;
    /** `Hub.implicit_spawn_seconds`. */
    readonly implicitSpawnSeconds: number;
  },
): void {
  page(
    '/user/{name}{/*rest}',
    'openServer',
    (shown) =>
      showStanding(shown, pages, deps, {
        next: deps.basePath + shown.ctx.originalUrl.slice(pages.urls.hub.length),
        stoppedStatus: 424,
        startSeconds:
          shown.visitor.login.user.id === shown.model.user.id ? deps.implicitSpawnSeconds : 0,
      }),
    {
      query: 'any',
      params: async (_visitor, ctx) => ({
        server: await serverAt(ctx, String(ctx['params']['name']), deps.serverStore),
      }),
    },
  );
}

/** A named server, where the path names one that exists; else the default one. */
async function serverAt(
  ctx: Context,
  userName: string,
  store: Pick<ServerStore, 'find'>,
): Promise<string> {
  return await serverNameAt(userName, String(ctx['params']['rest'] ?? ''), store);
}
