import type { Batches } from '../identity/accounts/batches.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { mayStartInMaintenance } from '../workloads/servers/maintenance.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import { operation, view } from './operation.ts';
import { type Deps as FollowUpDeps, followUpOf } from './user-imports.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'find' | 'listOfUser'>;
  readonly servers: Pick<UserServers, 'start' | 'stop'>;
  readonly batches: Pick<Batches, 'find'>;
}

/** What is done to many users at once, for one of them, beside what the API does. */
export const userBatchOperations = [
  operation({
    id: 'startServerOfUser',
    audience: 'page',
    method: 'POST',
    path: '/admin/users/{name}/start-server',
    audit: ['server.start', 'server.create'],
    tag: 'servers',
    summary: 'Begin to start the default server of a user, unless it runs',
    scopes: ['start:servers'],
    actsOnUser: true,
    target: 'server',
    answers: { 204: { description: 'It is starting, or runs.' } },
  }).handle(async ({ params, caller }, { users, serverStore, servers }: Deps) => {
    const user = await users.getByName(params.name);
    const server = await serverStore.find(user.name, '');
    if (server?.state !== 'running' && server?.state !== 'starting') {
      const mayStart = mayStartInMaintenance(caller);
      await servers.start({ user, serverName: '', mayStartInMaintenance: mayStart });
    }
    return { status: 204 };
  }),
  operation({
    id: 'stopServersOfUser',
    audience: 'page',
    method: 'POST',
    path: '/admin/users/{name}/stop-servers',
    audit: ['server.stop'],
    tag: 'servers',
    summary: 'Begin to stop all servers of a user',
    scopes: ['delete:servers'],
    actsOnUser: true,
    target: 'user',
    answers: { 204: { description: 'They are stopping, or have stopped.' } },
  }).handle(async ({ params, caller }, { users, serverStore, servers }: Deps) => {
    const user = await users.getByName(params.name);
    for (const { name, state } of await serverStore.listOfUser(user.name)) {
      if (state !== 'stopped' && state !== 'stopping')
        await servers.stop(user.name, name, caller.owner);
    }
    return { status: 204 };
  }),
  view({
    id: 'viewBatch',
    path: '/admin/batches/{batch}',
    scopes: ['list:users'],
    target: 'users',
  }).handle(async ({ params, caller }, { batches, ...deps }: Deps & FollowUpDeps) => {
    const report = await batches.find(params['batch'] ?? '', caller.user?.id ?? '');
    if (report !== undefined) return { report, followUp: await followUpOf(report, deps) };
    throw new HubError('not_found', text`Nothing is known of this any more.`, {
      hint: text`What was done is told for a day, to those who began it.`,
    });
  }),
];
