import { z } from 'zod';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { type ActivityLog, isActivityTime } from '../workloads/servers/activity.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'listOfUser'>;
  readonly activityLog: Pick<ActivityLog, 'noteUser' | 'noteServer'>;
}

const timestamp = z.iso.datetime({ offset: true, local: true });

/** Reports of servers and services. */
export const activityOperations = [
  operation({
    id: 'reportActivity',
    method: 'POST',
    path: '/users/{name}/activity',
    audit: { none: 'Servers report it every few minutes.' },
    tag: 'users',
    summary: 'Report activity of a user and their servers',
    scopes: ['users:activity'],
    target: 'user',
    body: z
      .object({
        last_activity: timestamp.optional(),
        servers: z.record(z.string(), z.looseObject({ last_activity: timestamp })).optional(),
      })
      .refine(
        ({ last_activity, servers }) =>
          last_activity !== undefined || Object.keys(servers ?? {}).length > 0,
        { message: 'Give last_activity, servers with at least one entry, or both.' },
      ),
    answers: { 200: { description: 'Taken note of; it never moves backwards.' } },
  }).handle(async ({ params, body }, { users, serverStore, activityLog }: Deps) => {
    const user = await users.getByName(params.name);
    const reported = Object.entries(body.servers ?? {});
    // One query, however many servers are named: each user may report, and names as many as they like.
    const servers = reported.length === 0 ? [] : await serverStore.listOfUser(params.name);
    const idsByName = new Map(servers.map(({ name, id }) => [name, id]));
    const reports = reported.map(([serverName, { last_activity }]) => {
      const serverId = idsByName.get(serverName);
      // The default server belongs to every user, also before there is a record of it.
      if (serverId === undefined && serverName !== '')
        throw new HubError('bad_request', text`There is no such server.`);
      return { serverId, at: parseTime(last_activity) };
    });
    const userAt = body.last_activity === undefined ? undefined : parseTime(body.last_activity);
    for (const { serverId, at } of reports) {
      if (serverId !== undefined) activityLog.noteServer(serverId, at);
    }
    const latest = [userAt, ...reports.map(({ at }) => at)].filter((at) => at !== undefined);
    activityLog.noteUser(user.id, new Date(Math.max(...latest.map(Number))));
    return { status: 200 };
  }),
];

function parseTime(written: string): Date {
  // A time without zone is UTC, as the clients that leave it out mean it.
  const time = new Date(/(?:Z|[+-]\d\d:?\d\d)$/i.test(written) ? written : `${written}Z`);
  if (!isActivityTime(time)) {
    throw new HubError('bad_request', text`The time of the activity lies in the future.`);
  }
  return time;
}
