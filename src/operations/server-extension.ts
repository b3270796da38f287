import { z } from 'zod';
import type { UserStore } from '../identity/users/user-store.ts';
import { comingStop, keptUntilOf } from '../workloads/servers/time-limits.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import { limitKind, time } from './models.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly servers: Pick<UserServers, 'extend'>;
}

const extension = z.object({
  stops_at: time.nullable().describe('When a time limit stops it, unless it is used until then.'),
  stop_reason: limitKind.nullable().describe('The limit that does.'),
  kept_until: time.nullable().describe('Until when it is kept running though it is idle.'),
});

function extensionAt<const Id extends string>(
  path: '/users/{name}/server' | '/users/{name}/servers/{server}',
  id: Id,
  which: string,
) {
  return operation({
    id,
    method: 'POST',
    path: `${path}/extend`,
    byCommand: 'by_running_hub',
    audit: ['server.keep'],
    tag: 'servers',
    target: 'server',
    summary: `Keep ${which} running`,
    description:
      'Counts as a use of the server now, so that it is not stopped for being idle; with `keep_running_seconds`, it is not for so long. Answers 409 where that changes nothing: it does not run, or its age stops it.',
    scopes: ['users:activity'],
    body: z
      .object({
        keep_running_seconds: z
          .number()
          .nonnegative()
          .optional()
          .describe(
            'For how long it is kept running from now on though it is idle, at most `Spawner.keep_running_max_seconds`; 0 keeps it no longer.',
          ),
      })
      .prefault({}),
    answers: { 200: { description: 'How long it runs from now on.', schema: extension } },
  }).handle(async ({ params, body }, { users, servers }: Deps) => {
    await users.getByName(params.name);
    const server = await servers.extend(params.name, params.server, body.keep_running_seconds);
    const stop = comingStop(server);
    return {
      status: 200,
      body: {
        stops_at: stop?.at.toISOString() ?? null,
        stop_reason: stop?.reason ?? null,
        kept_until: keptUntilOf(server)?.toISOString() ?? null,
      },
    };
  });
}

/** Users who keep their servers. */
export const serverExtensionOperations = [
  extensionAt('/users/{name}/server', 'extendDefaultServer', "a user's default server"),
  extensionAt('/users/{name}/servers/{server}', 'extendNamedServer', 'a named server'),
];
