import type Router from '@koa/router';
import { z } from 'zod';
import { HubError } from '../errors.ts';
import type { Authority } from '../rbac/authority.ts';
import type { ActivityLog } from '../servers/activity.ts';
import type { ServerStore } from '../servers/server-store.ts';
import type { UserStore } from '../users/user-store.ts';
import { parseBody } from './parse-body.ts';
import { requireScopes } from './require-scopes.ts';

const timestamp = z.iso.datetime({ offset: true, local: true });
const activity = z
  .strictObject({
    last_activity: timestamp.optional(),
    servers: z.record(z.string(), z.looseObject({ last_activity: timestamp })).optional(),
  })
  .refine(({ last_activity, servers }) => last_activity !== undefined || servers !== undefined, {
    message: 'Give last_activity, servers, or both.',
  });

/** A clock may be wrong by this much before a report is refused. */
const mostFutureMs = 59 * 60_000;

/** `POST /users/:name/activity`: reports of servers and services. */
export function activityRoutes(
  router: Router,
  parts: {
    readonly users: UserStore;
    readonly store: ServerStore;
    readonly activityLog: ActivityLog;
    readonly authority: Authority;
    readonly bodyLimitBytes: number;
  },
): void {
  router.post('/users/:name/activity', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const membership = await parts.authority.membership();
    requireScopes(ctx, ['users:activity'], membership, { kind: 'user', name });
    const user = await parts.users.getByName(name);
    const body = await parseBody(ctx, activity, parts.bodyLimitBytes);
    const reports = await Promise.all(
      Object.entries(body.servers ?? {}).map(async ([serverName, { last_activity }]) => {
        const server = await parts.store.find(name, serverName);
        if (server === undefined) throw new HubError('bad_request', 'There is no such server.');
        return { serverId: server.id, at: parseTime(last_activity) };
      }),
    );
    const userAt = body.last_activity === undefined ? undefined : parseTime(body.last_activity);
    for (const { serverId, at } of reports) parts.activityLog.noteServer(serverId, at);
    const latest = [userAt, ...reports.map(({ at }) => at)].filter((at) => at !== undefined);
    parts.activityLog.noteUser(user.id, new Date(Math.max(...latest.map(Number))));
    ctx.status = 200;
    ctx.body = '';
  });
}

function parseTime(text: string): Date {
  // A time without zone is UTC, as the clients that leave it out mean it.
  const time = new Date(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`);
  if (time.getTime() > Date.now() + mostFutureMs) {
    throw new HubError('bad_request', 'The time of the activity lies in the future.');
  }
  return time;
}
