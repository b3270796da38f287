import type { Origins } from '../../platform/http/origins.ts';
import { type Server, type ServerState, unreachableSince } from './server.ts';
import { isRescueState } from './spawner-set.ts';
import { comingStop, keptUntilOf, type LimitKind } from './time-limits.ts';

/** How the API shows a server; field names as on the wire. */
export interface ServerModel {
  readonly name: string;
  readonly display_name: string | null;
  readonly full_name: string;
  readonly last_activity: string | null;
  readonly started: string | null;
  readonly pending: 'spawn' | 'stop' | null;
  readonly ready: boolean;
  readonly stopped: boolean;
  /** Since when the instance of the hub that runs it is away; null while it can be reached. */
  readonly unreachable_since: string | null;
  readonly url: string;
  readonly full_url: string;
  /** In lists of users only where it is asked for. */
  readonly user_options?: Readonly<Record<string, unknown>>;
  readonly progress_url: string;
  readonly full_progress_url: string;
  readonly failure: {
    readonly message: string;
    readonly at: string;
    readonly output: readonly string[];
  } | null;
  /** When a time limit stops it, unless it is used until then; null where none does. */
  readonly stops_at: string | null;
  /** The limit that stops it at `stops_at`, or that stopped it. */
  readonly stop_reason: LimitKind | null;
  /** Until when its user keeps it running though it is idle. */
  readonly kept_until: string | null;
  /** Since when it is paused; the next request lets it go on. */
  readonly paused_at: string | null;
  /** Whether a file browser runs in its place, because its home is full. */
  readonly rescue: boolean;
  /** What the spawner stores; only with the scope `admin:server_state`. */
  readonly state?: Readonly<Record<string, unknown>>;
}

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
