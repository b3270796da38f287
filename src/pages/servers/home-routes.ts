import type Router from '@koa/router';
import type { Context } from 'koa';
import type { FirstRun } from '../../accounts/first-run.ts';
import type { Config } from '../../config/config.ts';
import type { LoadReader } from '../../instances/load-reader.ts';
import { loadKeys } from '../../metrics/load-history.ts';
import { mayAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Caller } from '../../rbac/caller.ts';
import type { Server } from '../../servers/server.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import { hasChoices } from '../../servers/spawn-options.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import type { Share } from '../../sharing/share.ts';
import type { Sharing } from '../../sharing/sharing.ts';
import type { Phrase } from '../../texts/text.ts';
import type { PageContext } from '../page-context.ts';
import type { AccessibleServices } from '../services/accessible-services.ts';
import type { SharedServer, SharedServers } from '../sharing/shared-servers.ts';
import { homePage } from './home-page.ts';
import { summaryOf, untouchedServer } from './server-views.ts';

/** Most shared servers on the page, those of several groups counted several times. */
const mostShared = 100;

/** Shows the home page, with what was wrong with the name of a new server. */
export type ShowHome = (
  ctx: Context,
  login: Login,
  failure?: { readonly problem: Phrase; readonly typedName: string },
) => Promise<void>;

/** `/hub/home`. Gives the home page for those whose form stands on it. */
export function homeRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly config: Pick<Config, 'Hub' | 'Spawner' | 'publicUrl' | 'file'>;
    readonly firstRun: Pick<FirstRun, 'isShownTo' | 'dismiss'>;
    readonly authorizer: Authorizer;
    readonly store: ServerStore;
    readonly servers: UserServers;
    readonly accessibleServices: AccessibleServices;
    readonly sharing: Pick<Sharing, 'ofOthersSharedWith'>;
    readonly loads: Pick<LoadReader, 'readHere'>;
  },
): ShowHome {
  const { pages, config, authorizer, store, servers } = deps;

  /** What others share with a user, each server once. */
  async function sharedWith({ user }: Login, caller: Caller): Promise<SharedServers> {
    const { items, total } = await deps.sharing.ofOthersSharedWith(user, {
      offset: 0,
      limit: mostShared,
    });
    const membership = await authorizer.membershipFor(caller.scopes);
    const present = (server: Server, shares: readonly Share[]): SharedServer => {
      const resource = {
        kind: 'server',
        userName: server.userName,
        serverName: server.name,
      } as const;
      const may = (scope: string) => mayAccess(caller.scopes, scope, resource, membership);
      return {
        server: summaryOf(server, pages.urlOf(servers.prefixOf(server))),
        scopeNames: [...new Set(shares.flatMap(({ scopeNames }) => scopeNames))],
        groupNames: shares.flatMap(({ recipient }) =>
          recipient.kind === 'group' ? [recipient.name] : [],
        ),
        isOwnShare: shares.some(({ recipient }) => recipient.kind === 'user'),
        mayOpen: may('access:servers'),
        mayStart: may('start:servers'),
      };
    };
    const byServer = Map.groupBy(items, ({ server }) => server.id).values();
    return {
      servers: [...byServer].flatMap((shares) =>
        shares.slice(0, 1).map(({ server }) => present(server, shares)),
      ),
      isCut: total > items.length,
    };
  }

  const showHome: ShowHome = async (ctx, login, failure) => {
    const { name: userName } = login.user;
    const caller = await pages.callerOf(login);
    const own = await store.listOfUser(userName);
    const summaries = own.map((server) =>
      summaryOf(
        server,
        pages.urlOf(servers.prefixOf(server)),
        deps.loads.readHere(loadKeys.server(server.id)),
      ),
    );
    const defaultServer =
      summaries.find(({ name }) => name === '') ??
      untouchedServer(userName, pages.urlOf(servers.prefixOf({ userName, name: '' })));
    const page = homePage({
      layout: await pages.formLayoutFor(ctx),
      userName,
      server: servers.isConfigured ? defaultServer : undefined,
      hasSpawnOptions: hasChoices(await servers.choicesFor(userName)),
      namedServers:
        config.Hub.allow_named_servers && servers.isConfigured
          ? {
              servers: summaries.filter(({ name }) => name !== ''),
              limit: config.Hub.named_server_limit_per_user,
              ...failure,
            }
          : undefined,
      mayShare: mayAccess(
        caller.scopes,
        'shares',
        { kind: 'user', name: userName },
        await authorizer.membershipFor(caller.scopes),
      ),
      shared: await sharedWith(login, caller),
      services: await deps.accessibleServices(caller, pages.languageOf(ctx)),
      firstRun: (await deps.firstRun.isShownTo(login.user))
        ? { configFile: config.file, isHttps: config.publicUrl.protocol === 'https:' }
        : undefined,
      limitWarningSeconds: config.Spawner.limit_warning_seconds,
    });
    pages.send(ctx, page, failure === undefined ? 200 : 400);
  };

  router.get(
    '/home',
    pages.loggedIn((ctx, login) => showHome(ctx, login)),
  );

  router.post(
    '/home/dismiss-first-run',
    pages.loggedIn(async (ctx, { user }) => {
      await pages.readForm(ctx);
      await deps.firstRun.dismiss(user.id);
      ctx.redirect(pages.urls.home);
      ctx.status = 303;
    }),
  );

  return showHome;
}
