import { z } from 'zod';
import type { UserStore } from '../identity/users/user-store.ts';
import { isWithin } from '../platform/concurrency/time-limit.ts';
import { HubError } from '../platform/errors.ts';
import type { Origins } from '../platform/http/origins.ts';
import type { Languages } from '../platform/texts/languages.ts';
import { text } from '../platform/texts/text.ts';
import type { BusyKernels } from '../workloads/servers/busy-kernels.ts';
import { mayStartInMaintenance } from '../workloads/servers/maintenance.ts';
import type { RemoteProgress } from '../workloads/servers/remote-progress.ts';
import type { ReportedAddresses } from '../workloads/servers/reported-addresses.ts';
import { type Server, type ServerProgress, unreachableSince } from '../workloads/servers/server.ts';
import type { ServerLifecycle } from '../workloads/servers/server-lifecycle.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { serverReady } from '../workloads/servers/start-texts.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import { freeData, names, serverModel } from './models.ts';
import { type OperationRequest, operation } from './operation.ts';
import { presentServer, type ServerModel } from './server-model.ts';
import { languageAskedFor, languageQuery, translateEvents } from './translate-events.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly servers: UserServers;
  readonly lifecycle: Pick<ServerLifecycle, 'unitOf'>;
  readonly remoteProgress: Pick<RemoteProgress, 'follow'>;
  readonly languages: Pick<Languages, 'find'>;
  readonly reportedAddresses: ReportedAddresses;
  readonly busyKernels: Pick<BusyKernels, 'namesOf'>;
  readonly apiPath: string;
  readonly origins: Origins;
  /** A start answers within this time: 201 when the server is ready by then, 202 when not. */
  readonly slowStartMs: number;
  /** As `slowStartMs`, for a stop: 204 or 202. */
  readonly slowStopMs: number;
}

const displayName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^\S(?:.*\S)?$/u, 'may not begin or end with white space');

const options = {
  display_name: displayName.optional(),
  user_options: freeData
    .optional()
    .describe(
      'Any JSON, up to 64 KiB for all servers of the user; the fields of the options form and profiles are checked. The last ones unless given.',
    ),
};
const creation = z.strictObject(options).prefault({});
const change = z.strictObject({
  name: z.string().optional().describe('A new name; the address of the server changes with it.'),
  ...options,
});

/** Without either key the whole body is the options, as older clients send it. */
const startBody = z
  .preprocess((body) => {
    const isWrapped = !isObject(body) || 'user_options' in body || 'display_name' in body;
    if (isWrapped) return body;
    return Object.keys(body).length === 0 ? {} : { user_options: body };
  }, z.object(options))
  .prefault({});

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const address = z.strictObject({
  host: z
    .string()
    .max(253)
    .regex(
      /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+)$/,
      'is no host name or IP address',
    )
    .optional()
    .describe('Host name or IP address; what the spawner knows it by unless given.'),
  port: z.int().min(1).max(65_535),
});

const progressModel = z
  .object({
    progress: z.number().min(0).max(100),
    message: z.string(),
    phase: z
      .enum(['pending', 'scheduling', 'pulling', 'starting'])
      .optional()
      .describe('What the start does, where the spawner tells; `pending` has no time limit.'),
    reason: z.string().optional().describe('Why, as the engine of the server puts it.'),
    ready: z.boolean().optional(),
    failed: z.boolean().optional(),
    url: z.string().optional().describe('Path of the server, when it is ready.'),
    output: names.optional().describe('The last lines it wrote, when it failed.'),
  })
  .meta({ id: 'Progress' });

/** The default server and named ones have everything in common but their paths. */
export type ServerKind = 'DefaultServer' | 'NamedServer';

/** Who may start a server, by whichever entrance. */
export const starting = {
  audit: ['server.start', 'server.create'],
  scopes: ['start:servers'],
  actsOnUser: true,
} as const;

/** Who may stop a server. */
export const stopping = { scopes: ['delete:servers'], actsOnUser: true } as const;

function startedAt<const Kind extends ServerKind>(
  path: '/users/{name}/server' | '/users/{name}/servers/{server}',
  suffix: Kind,
  which: string,
  alias?: '/users/{name}/servers/',
) {
  const shared = {
    tag: 'servers',
    target: 'server',
    ...(alias !== undefined && { aliases: [alias] }),
  } as const;
  return [
    operation({
      ...shared,
      id: `get${suffix}`,
      method: 'GET',
      path,
      summary: `Read ${which}`,
      scopes: ['read:servers'],
      answers: { 200: { description: 'The server.', schema: serverModel } },
    }).handle(async ({ params, may }, deps: Deps) => {
      const server = await getServer(params, deps);
      const { userName, name: serverName } = server;
      const mayOpen = may('access:servers', { kind: 'server', userName, serverName });
      const busy = mayOpen ? await deps.busyKernels.namesOf(server) : undefined;
      const body = present(server, may, deps);
      return { status: 200, body: busy === undefined ? body : { ...body, busy_kernels: busy } };
    }),
    operation({
      ...shared,
      id: `start${suffix}`,
      method: 'POST',
      path,
      byCommand: 'by_running_hub',
      ...starting,
      summary: `Start ${which}`,
      description:
        'Options stand in `user_options`, or are the whole body. Answers when the server is ready, or after `Spawner.slow_start_timeout`.',
      body: startBody,
      answers: {
        201: { description: 'It is ready.', schema: serverModel },
        202: { description: 'It is starting; follow its progress.', schema: serverModel },
      },
    }).handle(async ({ params, body, caller, may }, deps: Deps) => {
      const accepted = await deps.servers.start({
        user: await deps.users.getByName(params.name),
        serverName: params.server,
        userOptions: body.user_options,
        displayName: body.display_name,
        mayStartInMaintenance: mayStartInMaintenance(caller),
      });
      const isReady = await isWithin(accepted.ready, deps.slowStartMs);
      const model = present(await getServer(params, deps), may, deps);
      return { status: isReady ? 201 : 202, body: model };
    }),
    operation({
      ...shared,
      id: `stop${suffix}`,
      method: 'DELETE',
      path,
      byCommand: 'by_running_hub',
      audit: ['server.stop', 'server.delete'],
      ...stopping,
      summary: `Stop ${which}`,
      description: 'With `remove`, a named server is deleted as well.',
      body: z.object({ remove: z.boolean().default(false) }).prefault({}),
      answers: {
        202: { description: 'It is stopping.', schema: z.object({ message: z.string() }) },
        204: { description: 'It has stopped.' },
      },
    }).handle(async ({ params, body, caller }, deps: Deps) => {
      if (body.remove && params.server === '')
        throw new HubError('bad_request', text`The default server cannot be removed.`);
      await deps.users.getByName(params.name);
      const work = body.remove
        ? deps.servers.remove(params.name, params.server, caller.owner)
        : deps.servers
            .stop(params.name, params.server, caller.owner)
            .then(({ stopped }) => stopped);
      return (await isWithin(work, deps.slowStopMs))
        ? { status: 204 }
        : { status: 202, body: { message: 'The server is stopping.' } };
    }),
    operation({
      ...shared,
      id: `tellAddressOf${suffix}`,
      method: 'POST',
      path: `${path}/address`,
      ...(alias !== undefined && { aliases: [`${alias}/address`] }),
      audit: { none: 'It is a part of the start.' },
      summary: `Tell where ${which} listens`,
      description:
        'For a server that chooses its port itself, with its own token, while it starts (`HUB_ADDRESS_URL`). Once an address is accepted, no other is.',
      scopes: ['users:activity'],
      needsServerToken: true,
      body: address,
      answers: { 204: { description: 'The hub leads visitors there once it answers.' } },
    }).handle(async ({ params, body }, deps: Deps) => {
      const server = await getServer(params, deps);
      if (isAlreadyReported(server, body)) return;
      await deps.reportedAddresses.tell(server, { host: body.host, port: body.port });
    }),
    operation({
      ...shared,
      id: `follow${suffix}`,
      method: 'GET',
      path: `${path}/progress`,
      ...(alias !== undefined && { aliases: [`${alias}/progress`] }),
      summary: `Follow the start of ${which}`,
      description: 'Server-sent events until the server is ready or has failed.',
      scopes: ['read:servers'],
      query: languageQuery,
      answers: {
        200: {
          description: 'One `data:` line of JSON an event.',
          schema: progressModel,
          mediaType: 'text/event-stream',
        },
      },
    }).handle(async ({ params, query }, deps: Deps) => {
      const language = languageAskedFor(query, deps.languages);
      const follow = (events: AsyncIterable<ServerProgress>) =>
        translateEvents(events, 'message', language);
      const server = await getServer(params, deps);
      const log = deps.lifecycle.unitOf(server.id)?.progress;
      if (log !== undefined) return { status: 200, events: (signal) => follow(log.follow(signal)) };
      if (server.state === 'starting' && unreachableSince(server) === undefined) {
        return {
          status: 200,
          events: (signal) => follow(deps.remoteProgress.follow(server, signal)),
        };
      }
      const event = settledProgress(server, deps.origins.urlOf(deps.servers.prefixOf(server)));
      if (event === undefined) throw new HubError('not_found', text`The server is not starting.`);
      const settled = async function* () {
        yield event;
      };
      return { status: 200, events: () => follow(settled()) };
    }),
  ];
}

/** Users' servers. */
export const serverOperations = [
  ...startedAt(
    '/users/{name}/server',
    'DefaultServer',
    "a user's default server",
    '/users/{name}/servers/',
  ),
  ...startedAt('/users/{name}/servers/{server}', 'NamedServer', 'a named server'),
  operation({
    id: 'createNamedServer',
    method: 'PUT',
    path: '/users/{name}/servers/{server}',
    audit: ['server.create'],
    tag: 'servers',
    summary: 'Create a named server without starting it',
    scopes: ['start:servers'],
    actsOnUser: true,
    target: 'server',
    body: creation,
    answers: { 201: { description: 'The new server.', schema: serverModel } },
  }).handle(async ({ params, body, may }, deps: Deps) => {
    const server = await deps.servers.create({
      user: await deps.users.getByName(params.name),
      serverName: params.server,
      userOptions: body.user_options,
      displayName: body.display_name,
    });
    return { status: 201, body: present(server, may, deps) };
  }),
  operation({
    id: 'changeNamedServer',
    method: 'PATCH',
    path: '/users/{name}/servers/{server}',
    audit: ['server.change'],
    tag: 'servers',
    summary: 'Rename a stopped server, or change the name shown or its options',
    scopes: ['start:servers'],
    actsOnUser: true,
    target: 'server',
    body: change,
    answers: { 200: { description: 'The changed server.', schema: serverModel } },
  }).handle(async ({ params, body, may }, deps: Deps) => {
    const { name: userName } = params;
    const renamed = { ...params, server: body.name ?? params.server };
    const target = { kind: 'server', userName, serverName: renamed.server } as const;
    // A right to one server must not become one to what that server is called next.
    if (!may('start:servers', target)) {
      throw new HubError('forbidden', text`You may not give the server this name.`);
    }
    await deps.servers.change(userName, params.server, {
      name: body.name,
      displayName: body.display_name,
      userOptions: body.user_options,
    });
    return { status: 200, body: present(await getServer(renamed, deps), may, deps) };
  }),
];

/** The default server has the empty name, and no name in its path. */
type ServerParams = Readonly<Record<'name' | 'server', string>>;

async function getServer(params: ServerParams, { users, serverStore }: Deps): Promise<Server> {
  await users.getByName(params.name);
  const server = await serverStore.find(params.name, params.server);
  if (server === undefined) throw new HubError('not_found', text`There is no such server.`);
  return server;
}

function present(
  server: Server,
  may: OperationRequest<never>['may'],
  { servers, apiPath, origins }: Deps,
): ServerModel {
  const { userName, name } = server;
  return presentServer(server, {
    prefix: servers.prefixOf(server),
    apiPath,
    origins,
    withUserOptions: true,
    withState: may('admin:server_state', { kind: 'server', userName, serverName: name }),
  });
}

/** Whether it is the address the server has: the answer to its first report may have been lost. */
function isAlreadyReported({ url }: Server, { host, port }: z.output<typeof address>): boolean {
  const known = url === undefined ? null : URL.parse(url);
  if (known === null || Number(known.port) !== port) return false;
  return host === undefined || known.hostname === host.toLowerCase();
}

function settledProgress(server: Server, url: string): ServerProgress | undefined {
  if (server.state === 'running') return { progress: 100, ready: true, message: serverReady, url };
  if (server.failure === undefined) return undefined;
  const { message, output } = server.failure;
  return { progress: 100, failed: true, message, output };
}
