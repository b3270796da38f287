import type { LoadSeries } from '../../../platform/metrics/load-history.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Server, unreachableSince } from '../../../workloads/servers/server.ts';
import { isRescueState } from '../../../workloads/servers/spawner-set.ts';
import { comingStop, keptUntilOf, limitMs } from '../../../workloads/servers/time-limits.ts';
import { type ServerSummary, type ShownServerState, serverTitle } from './server-summary.ts';

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
    failure: hasFailed && server.failure !== undefined ? server.failure.message : undefined,
    unreachableSince: unreachable,
    comingStop: comingStop(server),
    keptUntil: keptUntilOf(server),
    pausedAt: server.pausedAt,
    isRescue: isRescueState(server.spawnerState),
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

/** Which operations are about a server of this name. */
export const kindOf = (serverName: string) => (serverName === '' ? 'DefaultServer' : 'NamedServer');

/** The part of the API's paths below a user that is about a server. */
export const apiPart = (serverName: string) =>
  serverName === '' ? 'server' : `servers/${encodeURIComponent(serverName)}`;

/** What a notice calls a server. */
export function targetName(
  viewer: string,
  { name = '', server = '' }: Readonly<Record<string, string>>,
): Phrase {
  if (server === '') return serverTitle({ userName: name, name: '' }, viewer);
  return name === viewer ? text`The server ${server}` : text`The server ${server} of ${name}`;
}
