import type { LoadSeries } from '../../metrics/load-history.ts';
import { type Server, unreachableSince } from '../../servers/server.ts';
import { comingStop, limitMs } from '../../servers/time-limits.ts';
import { translated } from '../../texts/text.ts';
import type { ServerSummary, ShownServerState } from './server-summary.ts';

/** What the pages show of a server; one that was never started is shown as a stopped one. */
export function summaryOf(server: Server, url: string, load?: LoadSeries): ServerSummary {
  const hasFailed = server.state === 'stopped' && server.failure !== undefined;
  const unreachable = unreachableSince(server);
  let state: ShownServerState = server.state;
  if (hasFailed) state = 'failed';
  else if (unreachable !== undefined) state = 'unreachable';
  return {
    userName: server.userName,
    name: server.name,
    displayName: server.displayName,
    state,
    url,
    startedAt: server.startedAt,
    stoppedAt: server.stoppedAt,
    lastActivityAt: server.lastActivityAt,
    failure:
      hasFailed && server.failure !== undefined ? translated(server.failure.message) : undefined,
    unreachableSince: unreachable,
    comingStop: comingStop(server),
    stoppedBy: stoppedByOf(server),
    ...(server.state === 'running' && { load }),
  };
}

/** The limit that stopped a server; undefined where none did. */
export function stoppedByOf({
  state,
  stoppedBy: reason,
  limits,
}: Server): ServerSummary['stoppedBy'] {
  if (state !== 'stopped' || reason === undefined) return undefined;
  return { reason, seconds: (limitMs(limits, reason) ?? 0) / 1000 };
}

/** The default server of a user who never had one. */
export function untouchedServer(userName: string, url: string): ServerSummary {
  return { userName, name: '', state: 'stopped', url };
}
