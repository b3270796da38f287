import { type Text, text } from '../../../platform/texts/text.ts';
import type { Server } from '../../../workloads/servers/server.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';
import { addressElement } from '../elements/address.ts';
import type { LiveOutputView } from '../elements/live-output.ts';
import type { BoundPages, ModelOf } from '../forms/binding.ts';
import { type ServerPageView, serverPage } from './server-page.ts';
import { apiPart, summaryOf, targetName, untouchedServer } from './server-views.ts';

/** `/hub/servers/{name}[/{server}]`: the page of a server, and a new start of it. */
export function serverPageRoutes(
  { page, form, pages }: BoundPages,
  deps: {
    /** Path of the API, with a slash at its end. */
    readonly apiPath: string;
    readonly servers: Pick<UserServers, 'prefixOf'>;
  },
): void {
  /** What the page shows of the output, and where it goes on. */
  function outputOf({
    userName,
    serverName,
    server,
    output,
  }: ModelOf<'viewServer'>): LiveOutputView | undefined {
    return (
      output && {
        ...output,
        url: `${deps.apiPath}users/${encodeURIComponent(userName)}/${apiPart(serverName)}/output`,
        emptyText:
          server?.state === 'stopped'
            ? text`It does not run.`
            : text`It has written nothing since it started.`,
      }
    );
  }

  for (const path of ['{name}', '{name}/{server}']) {
    const kind = path === '{name}' ? 'DefaultServer' : 'NamedServer';

    page(`/servers/${path}`, 'viewServer', ({ layout, model, may }) => {
      const { userName, serverName, server } = model;
      const url = pages.urlOf(deps.servers.prefixOf({ userName, name: serverName }));
      const has = server !== undefined;
      return serverPage({
        layout,
        server: has ? summaryOf(server, url) : untouchedServer(userName, url),
        setup: model.setup,
        place: has && model.mayReadState ? placeOf(server) : [],
        lastFailure: server?.lastFailure,
        load: model.load,
        span: model.span,
        idleCores: model.idleCores,
        busyKernels: model.busyKernels,
        maxKeptSeconds: model.maxKeptSeconds,
        homeSpace: model.homeSpace,
        budgets: model.budgets,
        currency: model.currency,
        output: outputOf(model),
        hasSpawnOptions: model.hasSpawnOptions,
        hasLastOptions: Object.keys(server?.userOptions ?? {}).length > 0,
        may: {
          open: may('openServer'),
          start: may(`beginStartOf${kind}`),
          stop: has && may(`beginStopOf${kind}`),
          share: has && may('shareServer'),
          extend: may(`extend${kind}`),
        },
      });
    });

    form(`/restart-server/${path}`, `restart${kind}` as const, {
      done({ params, visitor, result: { wasStopped } }) {
        const name = targetName(visitor.login.user.name, params);
        return {
          to: pages.urls.server(params['name'] ?? '', params['server']),
          say: wasStopped ? text`${name} is starting.` : text`${name} is restarting.`,
        };
      },
    });
  }
}

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
