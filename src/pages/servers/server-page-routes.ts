import type Router from '@koa/router';
import type { Context } from 'koa';
import type { Config } from '../../config/config.ts';
import { HubError } from '../../errors.ts';
import type { LoadReader } from '../../instances/load-reader.ts';
import { loadKeys } from '../../metrics/load-history.ts';
import { mayStartInMaintenance } from '../../servers/maintenance.ts';
import type { Server } from '../../servers/server.ts';
import type { ServerOutput } from '../../servers/server-output.ts';
import { describeSetup } from '../../servers/server-setup.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import { hasChoices } from '../../servers/spawn-options.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import { type Text, text, translated } from '../../texts/text.ts';
import { addressElement } from '../elements/address.ts';
import type { LiveOutputView } from '../elements/live-output.ts';
import { spanIn } from '../elements/load-plots.ts';
import type { PageContext } from '../page-context.ts';
import { type ServerPageView, serverPage } from './server-page.ts';
import { type FindServerTarget, type ServerTarget, targetName } from './server-target.ts';
import { summaryOf, untouchedServer } from './server-views.ts';

/** Lines of output on the page. */
const shownLines = 200;
/** How long a form waits for a new start to be refused. */
const refusalMs = 3_000;

/** `/hub/servers/<user>[/<server>]`: the page of a server, and a new start of it. */
export function serverPageRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly config: Pick<Config, 'Spawner'>;
    readonly findTarget: FindServerTarget;
    /** Path of the API, with a slash at its end. */
    readonly apiPath: string;
    readonly store: Pick<ServerStore, 'find'>;
    readonly servers: UserServers;
    readonly serverOutput: ServerOutput;
    readonly loads: Pick<LoadReader, 'read'>;
  },
): void {
  const { pages, findTarget, store, servers } = deps;

  const show = pages.loggedIn(async (ctx, login) => {
    const target = await findTarget(ctx, login, 'read:servers');
    const { user, serverName, may } = target;
    const server = await store.find(user.name, serverName);
    if (server === undefined && serverName !== '') throw noSuchServer();
    const span = spanIn(ctx.query);
    const isAdministrator = may('admin:server_state');
    const [choices, load, output, layout] = await Promise.all([
      servers.choicesFor(user.name),
      server === undefined ? noLoad : deps.loads.read(loadKeys.server(server.id), span),
      server !== undefined && may('access:servers') ? outputOf(server) : undefined,
      pages.formLayoutFor(ctx),
    ]);
    const url = pages.urlOf(servers.prefixOf({ userName: user.name, name: serverName }));
    const view: ServerPageView = {
      layout,
      server: server === undefined ? untouchedServer(user.name, url) : summaryOf(server, url),
      setup: describeSetup(
        { userOptions: server?.userOptions ?? {} },
        choices,
        deps.config.Spawner,
      ),
      place: server !== undefined && isAdministrator ? placeOf(server) : [],
      lastFailure: server?.lastFailure,
      load,
      span,
      output,
      hasSpawnOptions: hasChoices(choices),
      hasLastOptions: Object.keys(server?.userOptions ?? {}).length > 0,
      may: {
        open: may('access:servers'),
        start: may('start:servers'),
        stop: may('delete:servers') && server !== undefined,
        share: may('shares') && server !== undefined,
        extend: may('users:activity'),
      },
    };
    pages.send(ctx, serverPage(view));
  });

  async function outputOf(server: Server): Promise<LiveOutputView> {
    const { userName, name } = server;
    const path = name === '' ? 'server' : `servers/${encodeURIComponent(name)}`;
    const view = {
      url: `${deps.apiPath}users/${encodeURIComponent(userName)}/${path}/output`,
      emptyText:
        server.state === 'stopped'
          ? text`It does not run.`
          : text`It has written nothing since it started.`,
    };
    try {
      const { lines } = await deps.serverOutput.of(server.id).read(undefined, shownLines);
      return { ...view, lines };
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      return { ...view, lines: [], problem: translated(error.shown.message) };
    }
  }

  /** Starts it with the options of the last time, once it has stopped. */
  const restart = pages.loggedIn(async (ctx, login) => {
    const target = await findTarget(ctx, login, 'start:servers', 'delete:servers');
    const { user, serverName } = target;
    await pages.readForm(ctx);
    const wasStopped = (await store.find(user.name, serverName))?.state === 'stopped';
    const { accepted } = await servers.restart(
      {
        user,
        serverName,
        mayStartInMaintenance: mayStartInMaintenance(await pages.callerOf(login)),
      },
      { kind: 'user', name: login.user.name },
    );
    // A server may take its time to stop, for which a form is not held.
    await Promise.race([accepted, later(refusalMs)]);
    const name = targetName(login, target);
    tell(ctx, target, wasStopped ? text`${name} is starting.` : text`${name} is restarting.`);
  });

  function tell(ctx: Context, { user, serverName }: ServerTarget, told: Text): void {
    const url = pages.urls.server(user.name, serverName);
    pages.redirectWithNotice(ctx, url, { kind: 'good', text: told });
  }

  for (const path of ['/:user', '/:user/:server']) {
    router.get(`/servers${path}`, show);
    router.post(`/restart-server${path}`, restart);
  }
}

const noLoad = Promise.resolve({ series: undefined, silent: [] });

/** What spawners call what a server runs as. */
const placeLabels: Readonly<Record<string, Text>> = {
  spawner: text`Spawner`,
  pid: text`Process`,
  container: text`Container`,
  pod: text`Pod`,
  namespace: text`Namespace`,
  jobId: text`Job`,
  image: text`Image`,
};

function placeOf({ instance, spawnerState, url }: Server): ServerPageView['place'] {
  const known = Object.entries(placeLabels).flatMap(([key, label]) => {
    const value = spawnerState[key];
    return typeof value === 'string' || typeof value === 'number'
      ? [{ label, value: String(value) }]
      : [];
  });
  return [
    ...(instance === undefined ? [] : [{ label: text`Runs at`, value: instance.name }]),
    ...known,
    ...(url === undefined ? [] : [{ label: text`Reached at`, value: addressElement(url) }]),
  ];
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

function noSuchServer(): HubError {
  return new HubError('not_found', text`There is no such server, or it is not yours to use.`);
}
