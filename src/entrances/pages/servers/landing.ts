import type { Middleware } from 'koa';
import { loginOf } from '../../../identity/sessions/session-middleware.ts';
import type { HubConfig } from '../../../platform/config/config.ts';
import type { ServerStore } from '../../../workloads/servers/server-store.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';
import type { PageContext } from '../page-context.ts';
import type { PageUrls } from '../page-urls.ts';

/** Where a login leads that asked for nothing, and what the base URL shows. */
export interface Landing {
  /** The path that a login leads to. The query of the address that was asked for goes along to a server. */
  pathFor(userName: string, query?: URLSearchParams): Promise<string>;
  /** Answers the base URL and `/hub/`. */
  readonly middleware: Middleware;
}

/** The landing is `Hub.default_url`, else one's own server, else the home page. */
export function createLanding(deps: {
  readonly config: Pick<HubConfig, 'default_url' | 'redirect_to_server'>;
  readonly basePath: string;
  readonly urls: PageUrls;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly servers: Pick<UserServers, 'isConfigured' | 'launchedName' | 'prefixOf'>;
  readonly pages: Pick<PageContext, 'nextOf'>;
}): Landing {
  const { config, basePath, urls, serverStore, servers, pages } = deps;
  const here = new Set([basePath, urls.hub, urls.hub.slice(0, -1)]);
  const leadsToServer = config.redirect_to_server && servers.isConfigured;
  const { default_url: chosen } = config;
  const configured = chosen === undefined || here.has(chosen) ? undefined : chosen;

  async function ownServer(userName: string, query: URLSearchParams): Promise<string> {
    const name = servers.launchedName;
    const server = await serverStore.find(userName, name);
    const stopped = name === '' ? urls.ownSpawn : urls.spawn(userName, name);
    const path = server?.state === 'running' ? servers.prefixOf(server) : stopped;
    return withQuery(path, query);
  }

  async function pathFor(userName: string, query = new URLSearchParams()): Promise<string> {
    if (configured !== undefined) return configured;
    return leadsToServer ? ownServer(userName, query) : urls.home;
  }

  /** Where the base URL leads those who are not logged in, or whose login shows below `/hub/` only. */
  function pathForVisitor(path: string, query: URLSearchParams): string {
    if (configured !== undefined) return configured;
    if (!leadsToServer) return urls.login;
    const asked = withQuery(urls.hub, query);
    return path === urls.hub ? urls.loginThen(asked) : asked;
  }

  return {
    pathFor,

    async middleware(ctx) {
      const login = loginOf(ctx);
      const query = new URLSearchParams(ctx.querystring);
      // Links of JupyterHub name a page so, also to those who are logged in.
      const next = pages.nextOf(query);
      if (next !== undefined) ctx.redirect(login === undefined ? urls.loginThen(next) : next);
      else if (login === undefined) ctx.redirect(pathForVisitor(ctx.path, query));
      else ctx.redirect(await pathFor(login.user.name, query));
    },
  };
}

/** A path with a query, but for a page named there that it must not lead to. */
function withQuery(path: string, query: URLSearchParams): string {
  const kept = new URLSearchParams(query);
  kept.delete('next');
  return kept.size === 0 ? path : `${path}?${kept}`;
}
