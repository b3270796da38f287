import type Router from '@koa/router';
import type { Context } from 'koa';
import { z } from 'zod';
import { HubError } from '../errors.ts';
import { checkAccess } from '../rbac/access-check.ts';
import type { Authority } from '../rbac/authority.ts';
import type { Caller } from '../rbac/caller.ts';
import type { Server, ServerProgress } from '../servers/server.ts';
import type { ServerLifecycle } from '../servers/server-lifecycle.ts';
import { presentServer, type ServerModel } from '../servers/server-model.ts';
import type { ServerStore } from '../servers/server-store.ts';
import type { UserServers } from '../servers/user-servers.ts';
import type { UserStore } from '../users/user-store.ts';
import { writeEventStream } from './event-stream.ts';
import { parseBody } from './parse-body.ts';
import { requireScopes } from './require-scopes.ts';

/** A start answers within this time: 201 when the server is ready by then, 202 when not. */
const slowSpawnMs = 10_000;
const slowStopMs = 10_000;

const displayName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^\S(?:.*\S)?$/u, 'may not begin or end with white space');
const changes = z.strictObject({
  display_name: displayName.optional(),
  user_options: z.record(z.string(), z.unknown()).optional(),
});
/** Without either key the whole body is the options, as older clients send it. */
const startBody = z.union([changes, z.record(z.string(), z.unknown())]);
const stopBody = z.strictObject({ remove: z.boolean().default(false) });

/** `/users/:name/server`, `/users/:name/servers/:server` and their progress. */
export function serverRoutes(
  router: Router,
  parts: {
    readonly users: UserStore;
    readonly store: ServerStore;
    readonly servers: UserServers;
    readonly lifecycle: ServerLifecycle;
    readonly authority: Authority;
    readonly apiPath: string;
    readonly publicOrigin: string;
    readonly bodyLimitBytes: number;
  },
): void {
  const { users, store, servers, lifecycle, authority, bodyLimitBytes } = parts;

  async function authorise(
    ctx: Context,
    scope: string,
  ): Promise<{ caller: Caller; userName: string; serverName: string }> {
    const userName = String(ctx['params']['name']);
    const serverName = String(ctx['params']['server'] ?? '');
    const resource = { kind: 'server', userName, serverName } as const;
    const caller = requireScopes(ctx, [scope], await authority.membership(), resource);
    await users.getByName(userName);
    return { caller, userName, serverName };
  }

  async function present(server: Server, caller: Caller): Promise<ServerModel> {
    const resource = {
      kind: 'server',
      userName: server.userName,
      serverName: server.name,
    } as const;
    const membership = await authority.membership();
    return presentServer(server, {
      prefix: servers.prefixOf(server),
      apiPath: parts.apiPath,
      publicOrigin: parts.publicOrigin,
      withState:
        checkAccess(caller.scopes, 'admin:server_state', resource, membership) === 'granted',
    });
  }

  async function getServer(userName: string, serverName: string): Promise<Server> {
    const server = await store.find(userName, serverName);
    if (server === undefined) throw new HubError('not_found', 'There is no such server.');
    return server;
  }

  async function show(ctx: Context): Promise<void> {
    const { caller, userName, serverName } = await authorise(ctx, 'read:servers');
    ctx.body = await present(await getServer(userName, serverName), caller);
  }

  async function start(ctx: Context): Promise<void> {
    const { caller, userName, serverName } = await authorise(ctx, 'start:servers');
    const body = await parseBody(ctx, startBody, bodyLimitBytes);
    const isWrapped = 'user_options' in body || 'display_name' in body;
    const options = isWrapped ? (body as z.output<typeof changes>).user_options : body;
    const accepted = await servers.start({
      user: await users.getByName(userName),
      serverName,
      userOptions: options === undefined || Object.keys(options).length === 0 ? undefined : options,
      displayName: isWrapped ? (body as z.output<typeof changes>).display_name : undefined,
    });
    const isReady = await within(accepted.ready, slowSpawnMs);
    ctx.status = isReady ? 201 : 202;
    ctx.body = await present(await getServer(userName, serverName), caller);
  }

  async function stop(ctx: Context): Promise<void> {
    const { userName, serverName } = await authorise(ctx, 'delete:servers');
    const { remove } = await parseBody(ctx, stopBody, bodyLimitBytes);
    if (remove && serverName === '')
      throw new HubError('bad_request', 'The default server cannot be removed.');
    await getServer(userName, serverName);
    const work = remove
      ? servers.remove(userName, serverName)
      : servers.stop(userName, serverName).then(({ stopped }) => stopped);
    const isStopped = await within(work, slowStopMs);
    ctx.body = isStopped ? null : { message: 'The server is stopping.' };
    ctx.status = isStopped ? 204 : 202;
  }

  async function create(ctx: Context): Promise<void> {
    const { caller, userName, serverName } = await authorise(ctx, 'start:servers');
    const body = await parseBody(ctx, changes, bodyLimitBytes);
    const server = await servers.create({
      user: await users.getByName(userName),
      serverName,
      userOptions: body.user_options,
      displayName: body.display_name,
    });
    ctx.status = 201;
    ctx.body = await present(server, caller);
  }

  async function change(ctx: Context): Promise<void> {
    const { caller, userName, serverName } = await authorise(ctx, 'start:servers');
    const body = await parseBody(ctx, changes, bodyLimitBytes);
    await servers.change(userName, serverName, {
      displayName: body.display_name,
      userOptions: body.user_options,
    });
    ctx.body = await present(await getServer(userName, serverName), caller);
  }

  async function progress(ctx: Context): Promise<void> {
    const { userName, serverName } = await authorise(ctx, 'read:servers');
    const server = await getServer(userName, serverName);
    const log = lifecycle.unitOf(server.id)?.progress;
    if (log !== undefined) {
      writeEventStream(ctx, (signal) => log.follow(signal));
      return;
    }
    const event = settledProgress(server, servers.prefixOf(server));
    if (event === undefined) throw new HubError('bad_request', 'The server is not starting.');
    writeEventStream(ctx, async function* () {
      yield event;
    });
  }

  for (const path of ['/users/:name/server', '/users/:name/servers/:server']) {
    router.get(path, show);
    router.post(path, start);
    router.delete(path, stop);
    router.get(`${path}/progress`, progress);
  }
  router.put('/users/:name/servers/:server', create);
  router.patch('/users/:name/servers/:server', change);
}

function settledProgress(server: Server, url: string): ServerProgress | undefined {
  if (server.state === 'running')
    return { progress: 100, ready: true, message: 'The server is ready.', url };
  if (server.failure === undefined) return undefined;
  const { message, output } = server.failure;
  return { progress: 100, failed: true, message, output };
}

/** Whether work ended well within a time; rejects as the work does. */
async function within(work: Promise<void>, limitMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), limitMs);
  // A failure after the answer is in the server's own state and log.
  work.catch(() => undefined);
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
