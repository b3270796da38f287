import type { Config } from '../../../platform/config/config.ts';
import type { ListPage } from '../../../platform/store/page-edge.ts';
import { localizedPhrase, type Phrase, text } from '../../../platform/texts/text.ts';
import type { Server } from '../../../workloads/servers/server.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';
import type { ListedShare } from '../../../workloads/sharing/share.ts';
import type { BoundPages, ModelOf, Shown } from '../forms/binding.ts';
import { linksTo } from '../services/open-services.ts';
import type { SharedServer, SharedServers } from '../sharing/shared-servers.ts';
import { homePage } from './home-page.ts';
import { kindOf, summaryOf, untouchedServer } from './server-views.ts';

/** `/hub/home`, and the forms that stand there alone. */
export function homeRoutes(
  { page, form, pages }: BoundPages,
  deps: {
    readonly config: Pick<Config, 'Hub' | 'Spawner' | 'publicUrl' | 'file'>;
    readonly servers: Pick<UserServers, 'isConfigured' | 'prefixOf'>;
  },
): void {
  const { config, servers } = deps;
  const urlOf = (server: Pick<Server, 'userName' | 'name'>) =>
    pages.urlOf(servers.prefixOf(server));

  /** What others share with a user, each server once. */
  function sharedWith(
    { items, total }: ListPage<ListedShare>,
    may: Shown<unknown>['may'],
  ): SharedServers {
    const present = (server: Server, shares: readonly ListedShare[]): SharedServer => {
      const params = { name: server.userName, server: server.name };
      return {
        server: summaryOf(server, urlOf(server)),
        scopeNames: [...new Set(shares.flatMap(({ scopeNames }) => scopeNames))],
        groupNames: shares.flatMap(({ recipient }) =>
          recipient.kind === 'group' ? [recipient.name] : [],
        ),
        isOwnShare: shares.some(({ recipient }) => recipient.kind === 'user'),
        mayOpen: may('openServer', params),
        mayStart: may(`beginStartOf${kindOf(server.name)}`, params),
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

  function draw(shown: Shown<ModelOf<'viewHome'>>) {
    const { layout, model, may, failure, language } = shown;
    const { userName, loads } = model;
    const summaries = model.servers.map((server) => ({
      ...summaryOf(server, urlOf(server), loads.get(server.id)),
      lastChoice: lastChoiceOf(server, model),
    }));
    const defaultServer =
      summaries.find(({ name }) => name === '') ??
      untouchedServer(userName, urlOf({ userName, name: '' }));
    return homePage({
      layout,
      userName,
      server: servers.isConfigured ? defaultServer : undefined,
      hasSpawnOptions: model.hasSpawnOptions,
      namedServers:
        config.Hub.allow_named_servers && servers.isConfigured
          ? {
              servers: summaries.filter(({ name }) => name !== ''),
              limit: config.Hub.named_server_limit_per_user,
              problem: failure?.problem,
              typedName: failure?.sent.get('name') ?? undefined,
            }
          : undefined,
      startsAtLogin:
        model.startAtLogin.mayChoose && may('chooseStartAtLogin', { name: userName, server: '' })
          ? model.startAtLogin.isOn
          : undefined,
      mayShare: may('shareServer', { name: userName, server: '' }),
      shared: sharedWith(model.shared, may),
      services: linksTo(model.services, pages, language),
      lastLogin: model.lastLogin,
      firstRun: model.isFirstRun
        ? {
            configFile: config.file,
            isHttps: config.publicUrl.protocol === 'https:',
          }
        : undefined,
      limitWarningSeconds: config.Spawner.limit_warning_seconds,
      budgets: model.budgets,
      currency: config.Spawner.prices.currency,
    });
  }

  const showHome = page('/home', 'viewHome', draw);

  form('/create-server', 'createNamedServer', {
    params: (sent, { login }) => ({
      name: sent.get('user') ?? login.user.name,
      server: sent.get('name') ?? '',
    }),
    body: () => ({}),
    done: ({ params: { name = '', server } }) => ({ redirect: pages.urls.spawn(name, server) }),
    again: showHome,
  });

  form('/start-at-login', 'chooseStartAtLogin', {
    params: (_sent, { login }) => ({ name: login.user.name }),
    body: (sent) => ({ enabled: sent.get('enabled') === 'true' }),
    done: ({ result: { enabled } }) => ({
      to: pages.urls.home,
      say: enabled
        ? text`Your server starts when you log in from now on.`
        : text`Your server no longer starts when you log in.`,
    }),
  });

  form('/home/dismiss-first-run', 'dismissFirstRun', {
    done: () => ({ redirect: pages.urls.home }),
  });
}

/** What a start without options would choose, where something was chosen before. */
function lastChoiceOf(
  { userOptions }: Server,
  { profiles, hasSpawnOptions }: Pick<ModelOf<'viewHome'>, 'profiles' | 'hasSpawnOptions'>,
): Phrase | undefined {
  if (!hasSpawnOptions || Object.keys(userOptions).length === 0) return undefined;
  if (profiles.length === 0) return text`the same options`;
  const profile = profiles.find(({ name }) => name === userOptions['profile']);
  return profile && localizedPhrase(profile.display_name ?? profile.name);
}
