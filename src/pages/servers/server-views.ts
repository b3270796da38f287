import type { Server } from '../../servers/server.ts';
import type { ServerSummary } from './server-summary.ts';

/** What the pages show of a server; one that was never started is shown as a stopped one. */
export function summaryOf(server: Server, url: string): ServerSummary {
  const hasFailed = server.state === 'stopped' && server.failure !== undefined;
  return {
    userName: server.userName,
    name: server.name,
    displayName: server.displayName,
    state: hasFailed ? 'failed' : server.state,
    url,
    startedAt: server.startedAt,
    lastActivityAt: server.lastActivityAt,
    failure: hasFailed ? server.failure?.message : undefined,
  };
}

/** The default server of a user who never had one. */
export function untouchedServer(userName: string, url: string): ServerSummary {
  return { userName, name: '', state: 'stopped', url };
}
