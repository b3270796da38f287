import type { Origins } from '../platform/http/origins.ts';
import { type Server, type ServerState, unreachableSince } from '../workloads/servers/server.ts';
import { isRescueState } from '../workloads/servers/spawner-set.ts';
import { comingStop, keptUntilOf } from '../workloads/servers/time-limits.ts';
import type { serverModel } from './models.ts';
import type { ModelOf } from './operation.ts';

/** How the API shows a server. */
export type ServerModel = ModelOf<typeof serverModel>;

const pendingByState = {
  stopped: null,
  starting: 'spawn',
  running: null,
  stopping: 'stop',
} as const satisfies Record<ServerState, ServerModel['pending']>;

/** Presents a server. `apiPath` is the path of the REST API, `prefix` that of the server. */
export function presentServer(
  server: Server,
  options: {
    readonly prefix: string;
    readonly apiPath: string;
    readonly origins: Pick<Origins, 'hub' | 'of' | 'urlOf'>;
    readonly withState: boolean;
    readonly withUserOptions: boolean;
  },
): ServerModel {
  const { prefix, apiPath, origins } = options;
  const owner = { kind: 'server', userName: server.userName, serverName: server.name } as const;
  const unreachable = unreachableSince(server);
  const stop = comingStop(server);
  const user = `${apiPath}users/${encodeURIComponent(server.userName)}`;
  const progressUrl =
    server.name === ''
      ? `${user}/server/progress`
      : `${user}/servers/${encodeURIComponent(server.name)}/progress`;
  return {
    name: server.name,
    display_name: server.displayName ?? null,
    full_name: `${server.userName}/${server.name}`,
    last_activity: server.lastActivityAt?.toISOString() ?? null,
    started: server.startedAt?.toISOString() ?? null,
    pending: pendingByState[server.state],
    ready: server.state === 'running' && unreachable === undefined,
    stopped: server.state === 'stopped',
    unreachable_since: unreachable?.toISOString() ?? null,
    url: origins.urlOf(prefix),
    full_url: origins.of(owner) + prefix,
    ...(options.withUserOptions ? { user_options: server.userOptions } : {}),
    progress_url: progressUrl,
    full_progress_url: origins.hub + progressUrl,
    failure:
      server.failure === undefined
        ? null
        : {
            ...server.failure,
            message: String(server.failure.message),
            at: server.failure.at.toISOString(),
          },
    stops_at: stop?.at.toISOString() ?? null,
    stop_reason: stop?.reason ?? (server.state === 'stopped' ? server.stoppedBy : null) ?? null,
    kept_until: keptUntilOf(server)?.toISOString() ?? null,
    paused_at: server.pausedAt?.toISOString() ?? null,
    rescue: isRescueState(server.spawnerState),
    ...(options.withState ? { state: server.spawnerState } : {}),
  };
}
