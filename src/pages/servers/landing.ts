import type { Middleware } from 'koa';
import type { HubConfig } from '../../config/config.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import { loginOf } from '../../sessions/session-middleware.ts';
import type { PageContext } from '../page-context.ts';
import type { PageUrls } from '../page-urls.ts';

/** Where a login leads that asked for nothing, and what the base URL shows. */
export interface Landing {
  /** The address to send a browser to that has just logged in. */
  readonly url: string;
  /** Answers the base URL and `/hub/`. */
  readonly middleware: Middleware;
}

/** The landing is `Hub.default_url`, else one's own server, else the home page. */
export function createLanding(deps: {
  readonly config: Pick<HubConfig, 'default_url' | 'redirect_to_server'>;
  readonly basePath: string;
  readonly urls: PageUrls;
  readonly store: Pick<ServerStore, 'find'>;
  readonly servers: Pick<UserServers, 'isConfigured' | 'launchedName' | 'prefixOf'>;
  readonly pages: Pick<PageContext, 'nextOf'>;
}): Landing {
  const { config, basePath, urls, store, servers, pages } = deps;
  const here = new Set([basePath, urls.hub, urls.hub.slice(0, -1)]);
  const leadsToServer = config.redirect_to_server && servers.isConfigured;
  const { default_url: chosen } = config;
  const configured = chosen === undefined || here.has(chosen) ? undefined : chosen;

  async function ownServer(userName: string): Promise<string> {
    const name = servers.launchedName;
    const server = await store.find(userName, name);
    return server?.state === 'running' ? servers.prefixOf(server) : urls.spawn(userName, name);
  }

  return {
    url: configured ?? (leadsToServer ? urls.hub : urls.home),

    async middleware(ctx) {
      const login = loginOf(ctx);
      // Links of JupyterHub name a page so, also to those who are logged in.
      const next = pages.nextOf(new URLSearchParams(ctx.querystring));
      if (login === undefined) ctx.redirect(next === undefined ? urls.login : urls.loginThen(next));
      else if (next !== undefined) ctx.redirect(next);
      else if (configured !== undefined) ctx.redirect(configured);
      else ctx.redirect(leadsToServer ? await ownServer(login.user.name) : urls.home);
    },
  };
}
