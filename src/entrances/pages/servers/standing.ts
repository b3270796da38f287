import type { ServerStanding } from '../../../operations/server-pages.ts';
import { unreachableSince } from '../../../workloads/servers/server.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';
import type { Shown } from '../forms/binding.ts';
import type { Html } from '../html.ts';
import { leadOn } from '../login/interstitial-redirect.ts';
import type { PageContext } from '../page-context.ts';
import { notRunningPage } from './not-running-page.ts';
import { apiPart, kindOf, stoppedByOf } from './server-views.ts';
import { spawnPendingPage, stopPendingPage } from './spawn-pending-page.ts';
import { unreachablePage } from './unreachable-page.ts';

export interface StandingDeps {
  /** Path of the API, with a slash at its end. */
  readonly apiPath: string;
  readonly servers: Pick<UserServers, 'prefixOf'>;
}

/** Shows where a server stands: starting, stopping, not running; a ready one is opened. */
export async function showStanding(
  shown: Shown<ServerStanding>,
  pages: PageContext,
  deps: StandingDeps,
  options: {
    readonly next: string | undefined;
    /** Of one that is stopped, for who asked for the server itself; 503 then while it is not ready. */
    readonly stoppedStatus?: number;
    readonly startSeconds?: number;
  },
): Promise<undefined> {
  const { layout, model, may, ctx } = shown;
  const { user, serverName, server, start } = model;
  const target = { name: user.name, server: serverName };
  const summary = { userName: user.name, name: serverName, displayName: server?.displayName };
  const prefix = deps.servers.prefixOf({ userName: user.name, name: serverName });
  const readyUrl = pages.urlOf(options.next ?? prefix);
  const send = (page: Html) =>
    pages.send(ctx, page, options.stoppedStatus === undefined ? 200 : 503);
  const since = server && unreachableSince(server);
  if (since !== undefined) {
    const mayForget = may(`beginStopOf${kindOf(serverName)}`, target);
    send(unreachablePage({ layout, server: summary, since, mayForget }));
    return;
  }
  switch (server?.state) {
    case 'running':
      await leadOn(ctx, pages, readyUrl);
      return;
    case 'starting': {
      const api = `${deps.apiPath}users/${encodeURIComponent(user.name)}/${apiPart(serverName)}`;
      send(
        spawnPendingPage({
          layout,
          server: summary,
          progress: start?.steps.at(-1)?.progress ?? 0,
          steps: start?.steps ?? [],
          since: server.startingAt,
          usualMs: start?.usualMs,
          eventsUrl: `${api}/progress`,
          ...(start?.output && { output: { url: `${api}/output`, lines: start.output } }),
          readyUrl,
        }),
      );
      return;
    }
    case 'stopping':
      send(stopPendingPage({ layout, server: summary }));
      return;
    case 'stopped':
    case undefined: {
      const page = notRunningPage({
        layout,
        server: summary,
        failure: server?.failure,
        stoppedBy: server && stoppedByOf(server),
        mayStart: may(`beginStartOf${kindOf(serverName)}`, target),
        hasSpawnOptions: model.hasSpawnOptions,
        next: options.next,
        startSeconds: options.startSeconds,
      });
      pages.send(ctx, page, options.stoppedStatus ?? 200);
    }
  }
}
