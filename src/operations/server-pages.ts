import { z } from 'zod';
import type { LoadReader } from '../cluster/instances/load-reader.ts';
import type { Resource } from '../identity/rbac/access-check.ts';
import type { User, UserStore } from '../identity/users/user-store.ts';
import type { SpawnerConfig } from '../platform/config/config.ts';
import { HubError } from '../platform/errors.ts';
import { loadKeys } from '../platform/metrics/load-history.ts';
import { type Phrase, text } from '../platform/texts/text.ts';
import type { BusyKernels } from '../workloads/servers/busy-kernels.ts';
import type { HomeSpaces } from '../workloads/servers/home-spaces.ts';
import { mayStartInMaintenance } from '../workloads/servers/maintenance.ts';
import type { RemoteProgress } from '../workloads/servers/remote-progress.ts';
import { type Server, type ServerProgress, unreachableSince } from '../workloads/servers/server.ts';
import type { ServerLifecycle } from '../workloads/servers/server-lifecycle.ts';
import type { ServerOutput } from '../workloads/servers/server-output.ts';
import { describeSetup } from '../workloads/servers/server-setup.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { hasChoices } from '../workloads/servers/spawn-options.ts';
import type { StartTimes } from '../workloads/servers/start-times-store.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import type { Budgets } from '../workloads/usage/budgets.ts';
import { pricesOf } from '../workloads/usage/count-use.ts';
import { freeData, loadSpan } from './models.ts';
import { operation, view } from './operation.ts';
import { type ServerKind, starting, stopping } from './servers.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly servers: UserServers;
  readonly lifecycle: Pick<ServerLifecycle, 'unitOf' | 'reaches'>;
  readonly remoteProgress: Pick<RemoteProgress, 'soFar'>;
  readonly startTimes: StartTimes;
  readonly serverOutput: ServerOutput;
  readonly loads: Pick<LoadReader, 'read'>;
  readonly homeSpaces: HomeSpaces;
  readonly busyKernels: Pick<BusyKernels, 'namesOf'>;
  readonly budgets: Pick<Budgets, 'ofUser'>;
  readonly spawnerConfig: SpawnerConfig;
}

/** Lines of output on the page of a server. */
const shownLines = 200;
/** How many of the last lines of output the page of a start shows; as in progress.js. */
const startLines = 8;
/** How long a form waits for a new start to be refused. */
const refusalMs = 3_000;

const target = { tag: 'servers', target: 'server' } as const;

/** What pages do with a server without waiting for the end of it. */
function formsAt<const Kind extends ServerKind>(path: '{name}' | '{name}/{server}', kind: Kind) {
  return [
    operation({
      ...target,
      ...starting,
      id: `beginStartOf${kind}`,
      audience: 'page',
      method: 'POST',
      path: `/spawn/${path}`,
      summary: 'Begin to start a server, or join a start under way',
      body: z.object({ user_options: freeData.optional() }),
      answers: {
        200: { description: 'Whether it began.', schema: z.object({ isNew: z.boolean() }) },
      },
    }).handle(async ({ params, body, caller }, { users, servers, serverStore }: Deps) => {
      const user = await users.getByName(params.name);
      try {
        await servers.start({
          user,
          serverName: params.server,
          userOptions: body.user_options,
          mayStartInMaintenance: mayStartInMaintenance(caller),
        });
        return { status: 200, body: { isNew: true } };
      } catch (error) {
        const server = await serverStore.find(user.name, params.server);
        if (server === undefined || server.state === 'stopped') throw error;
        // Two browsers pressed start together: both may watch the one start.
        return { status: 200, body: { isNew: false } };
      }
    }),
    operation({
      ...target,
      ...stopping,
      id: `beginStopOf${kind}`,
      audience: 'page',
      method: 'POST',
      path: `/stop/${path}`,
      audit: ['server.stop'],
      summary: 'Begin to stop a server',
      answers: { 204: { description: 'It is stopping.' } },
    }).handle(async ({ params, caller }, { users, servers }: Deps) => {
      const { name } = await users.getByName(params.name);
      await servers.stop(name, params.server, caller.owner);
    }),
    operation({
      ...target,
      ...starting,
      id: `restart${kind}`,
      audience: 'page',
      method: 'POST',
      path: `/restart-server/${path}`,
      audit: ['server.start', 'server.stop'],
      summary: 'Start a server with its last options, once it has stopped',
      answers: {
        200: { description: 'How it was.', schema: z.object({ wasStopped: z.boolean() }) },
      },
    }).handle(async ({ params, caller, may }, { users, servers, serverStore }: Deps) => {
      const user = await users.getByName(params.name);
      if (!may('delete:servers', resourceAt(params))) throw noSuchServer();
      const server = await serverStore.find(user.name, params.server);
      const { accepted } = await servers.restart(
        {
          user,
          serverName: params.server,
          mayStartInMaintenance: mayStartInMaintenance(caller),
        },
        caller.owner,
      );
      // A server may take its time to stop, for which a form is not held.
      await Promise.race([accepted, later(refusalMs)]);
      return { status: 200, body: { wasStopped: server?.state === 'stopped' } };
    }),
  ];
}

/** Servers as pages show them, and start and stop them. */
export const serverPageOperations = [
  ...formsAt('{name}', 'DefaultServer'),
  ...formsAt('{name}/{server}', 'NamedServer'),
  view({
    id: 'viewServer',
    path: '/servers/{name}/{server}',
    scopes: ['read:servers'],
    target: 'server',
    query: z.object({ span: loadSpan }),
  }).handle(async ({ params, query: { span }, caller, may }, deps: Deps) => {
    const user = await deps.users.getByName(params.name);
    const server = await deps.serverStore.find(user.name, params.server);
    if (server === undefined && params.server !== '') throw noSuchServer();
    const resource = resourceAt(params);
    const profile = server?.userOptions['profile'];
    const isOwn = caller.user?.id === user.id;
    const [choices, load, output, homeSpace, busy, budgets] = await Promise.all([
      deps.servers.choicesFor(user.name),
      server === undefined
        ? { series: undefined, silent: [] }
        : deps.loads.read(loadKeys.server(server.id), span),
      server !== undefined && may('access:servers', resource)
        ? outputOf(server, shownLines, deps)
        : undefined,
      server && deps.homeSpaces.find(server),
      server && deps.busyKernels.namesOf(server),
      server?.state === 'running' && isOwn
        ? deps.budgets.ofUser(user, typeof profile === 'string' ? [profile] : [])
        : [],
    ]);
    return {
      userName: user.name,
      serverName: params.server,
      server,
      setup: describeSetup({ userOptions: server?.userOptions ?? {} }, choices, deps.spawnerConfig),
      hasSpawnOptions: hasChoices(choices),
      load,
      idleCores: deps.spawnerConfig.idle_cpu_cores,
      maxKeptSeconds: deps.spawnerConfig.keep_running_max_seconds,
      span,
      output,
      homeSpace,
      /** Their names are for who may open the server. */
      busyKernels: may('access:servers', resource) ? busy : busy?.map(() => ''),
      budgets,
      currency: deps.spawnerConfig.prices.currency,
      mayReadState: may('admin:server_state', resource),
    };
  }),
  view({
    id: 'viewStart',
    path: '/spawn/{name}/{server}',
    scopes: starting.scopes,
    target: 'server',
    actsOnUser: true,
  }).handle(async ({ params }, deps: Deps) => {
    const user = await deps.users.getByName(params.name);
    const server = await deps.serverStore.find(user.name, params.server);
    const choices = await deps.servers.choicesFor(user.name);
    const prices = choices.profiles.map(({ name }) => pricesOf(name, deps.spawnerConfig));
    return { user, server, choices, prices, currency: deps.spawnerConfig.prices.currency };
  }),
  view({
    id: 'viewProgress',
    path: '/spawn-pending/{name}/{server}',
    scopes: ['read:servers'],
    target: 'server',
  }).handle(({ params, may }, deps: Deps) =>
    standingOf(params, may('access:servers', resourceAt(params)), deps),
  ),
  view({
    id: 'openServer',
    path: '/user/{name}/{server}',
    scopes: ['access:servers'],
    target: 'server',
    outsideFilter: 'forbidden',
  }).handle(({ params }, deps: Deps) => standingOf(params, true, deps)),
  view({
    id: 'viewServerDeletion',
    path: '/delete-server/{name}/{server}',
    ...stopping,
    target: 'server',
  }).handle(async ({ params }, { users }: Deps) => ({
    userName: (await users.getByName(params.name)).name,
  })),
];

/** Where a server stands, in place of its own pages. */
export interface ServerStanding {
  readonly user: User;
  readonly serverName: string;
  /** Undefined for one that never was. */
  readonly server: Server | undefined;
  /** Whether a start first asks for options. */
  readonly hasSpawnOptions: boolean;
  /** Of one that is starting. */
  readonly start?: {
    readonly steps: readonly ServerProgress[];
    readonly usualMs: number | undefined;
    /** Its last lines, for who may open it. */
    readonly output: readonly string[] | undefined;
  };
}

/** Throws `not_found` for no user, and `unavailable` for a server that runs and has no route. */
async function standingOf(
  params: ServerParams,
  mayReadOutput: boolean,
  deps: Deps,
): Promise<ServerStanding> {
  const user = await deps.users.getByName(params.name);
  const server = await deps.serverStore.find(user.name, params.server);
  const isUnreachable = server !== undefined && unreachableSince(server) !== undefined;
  const hasSpawnOptions = hasChoices(await deps.servers.choicesFor(user.name));
  const standing = { user, serverName: params.server, server, hasSpawnOptions };
  if (server === undefined || isUnreachable) return standing;
  // Its route is not there, so that leading to it would lead back to here.
  if (server.state === 'running' && !(await deps.lifecycle.reaches(server))) {
    throw new HubError('unavailable', text`The hub does not reach this server at the moment.`, {
      hint: text`Try again in a moment.`,
      retryAfterSeconds: 5,
    });
  }
  if (server.state !== 'starting') return standing;
  const log = deps.lifecycle.unitOf(server.id)?.progress;
  const { profile } = server.userOptions;
  return {
    ...standing,
    start: {
      steps: log?.events ?? (await deps.remoteProgress.soFar(server)),
      usualMs: await deps.startTimes.usualMs(typeof profile === 'string' ? profile : undefined),
      output: mayReadOutput ? (await outputOf(server, startLines, deps)).lines : undefined,
    },
  };
}

/** The last lines; none where its instance does not answer. */
async function outputOf(
  { id }: Server,
  max: number,
  { serverOutput }: Pick<Deps, 'serverOutput'>,
): Promise<{ readonly lines: readonly string[]; readonly problem?: Phrase }> {
  try {
    const { lines } = await serverOutput.of(id).read(undefined, max);
    return { lines };
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    return { lines: [], problem: error.shown.message };
  }
}

/** The default server has the empty name. */
type ServerParams = Readonly<Record<'name' | 'server', string>>;

function resourceAt({ name, server }: ServerParams): Resource {
  return { kind: 'server', userName: name, serverName: server };
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

function noSuchServer(): HubError {
  return new HubError('not_found', text`There is no such server, or it is not yours to use.`);
}
