import { z } from 'zod';
import type { Batches } from '../identity/accounts/batches.ts';
import type { GroupMembers } from '../identity/accounts/group-members.ts';
import type { GroupStore } from '../identity/users/group-store.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { mayStartInMaintenance } from '../workloads/servers/maintenance.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import { members } from './groups.ts';
import { operation, view } from './operation.ts';
import { type Deps as FollowUpDeps, followUpOf } from './user-imports.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'find' | 'listOfUser'>;
  readonly servers: Pick<UserServers, 'start' | 'stop'>;
  readonly batches: Pick<Batches, 'find'>;
  readonly groups: Pick<GroupStore, 'getByName'>;
  readonly groupMembers: Pick<GroupMembers, 'move'>;
  /** Lets the stores know of activity that was only noted so far. */
  readonly flushActivity: () => Promise<void>;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly now: () => number;
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
  }),
  operation({
    id: 'stopServersOfUser',
    audience: 'page',
    method: 'POST',
    path: '/admin/users/{name}/stop-servers',
    audit: ['server.stop'],
    tag: 'servers',
    summary: 'Begin to stop the servers of a user',
    scopes: ['delete:servers'],
    actsOnUser: true,
    target: 'user',
    body: z.object({ idle_minutes: z.number().positive().optional() }).prefault({}),
    answers: { 204: { description: 'They are stopping, or have stopped.' } },
  }).handle(async ({ params, body, caller }, deps: Deps) => {
    const { users, serverStore, servers, flushActivity, now } = deps;
    const user = await users.getByName(params.name);
    const idleMs = (body.idle_minutes ?? 0) * 60_000;
    if (idleMs > 0) await flushActivity();
    for (const server of await serverStore.listOfUser(user.name)) {
      const { name, state, lastActivityAt, startedAt } = server;
      const usedAt = Number(lastActivityAt ?? startedAt ?? 0);
      const isIdle = idleMs === 0 || (state === 'running' && usedAt + idleMs <= now());
      if (isIdle && state !== 'stopped' && state !== 'stopping')
        await servers.stop(user.name, name, caller.owner);
    }
  }),
  operation({
    id: 'moveGroupMembers',
    audience: 'page',
    method: 'POST',
    path: '/admin/groups/{group}/move-members',
    audit: ['group.remove_members', 'group.add_members'],
    tag: 'groups',
    summary: 'Move members to another group, all or none',
    scopes: ['groups'],
    needsRecentLogin: true,
    target: 'group',
    body: members.extend({ to: z.string() }),
    answers: { 204: { description: 'They are in the other group.' } },
  }).handle(async ({ params, body, caller, may }, { groups, groupMembers }: Deps) => {
    const { name } = await groups.getByName(body.to);
    if (!may('groups', { kind: 'group', name }))
      throw new HubError('forbidden', text`You may not add users to the group “${name}”.`);
    await groupMembers.move(caller, { from: params.group, to: name }, body.users);
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
