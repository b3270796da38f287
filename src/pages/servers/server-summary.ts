import type { ServerState } from '../../servers/server.ts';
import { type Html, html } from '../html.ts';

/** What the pages show of a user's server. */
export interface ServerSummary {
  readonly userName: string;
  /** Empty for the default server. */
  readonly name: string;
  readonly displayName?: string | undefined;
  readonly state: ShownServerState;
  /** Where it is opened: `/user/alice/`. */
  readonly url: string;
  readonly startedAt?: Date | undefined;
  readonly lastActivityAt?: Date | undefined;
  /** Why the last start or run failed. */
  readonly failure?: string | undefined;
  /** Since when nothing is known of it. */
  readonly unreachableSince?: Date | undefined;
}

/**
 * Where a server is in its life, that it ended without being stopped, or that the instance of the hub that
 * runs it is away.
 */
export type ShownServerState = ServerState | 'failed' | 'unreachable';

const words = {
  stopped: ['', 'Stopped'],
  starting: ['warn', 'Starting'],
  running: ['good', 'Running'],
  stopping: ['warn', 'Stopping'],
  failed: ['bad', 'Failed'],
  unreachable: ['bad', 'Unreachable'],
} as const satisfies Record<ShownServerState, readonly [string, string]>;

/** What a person can do about an unreachable server. */
export const unreachableHint =
  'It comes back with its machine. If you cannot wait, forget it and start a new one elsewhere; what it had not saved is lost.';

/** The state of a server as a coloured dot and a word. */
export function serverStatus(state: ShownServerState): Html {
  const [kind, word] = words[state];
  return html`<span class="status ${kind}">${word}</span>`;
}

/** Whether a page with these servers should follow what happens to them. */
export function isChanging(servers: readonly ServerSummary[]): boolean {
  return servers.some(({ state }) => state === 'starting' || state === 'stopping');
}

/** The name by which a person knows a server. */
export function serverTitle(
  server: Pick<ServerSummary, 'name' | 'displayName' | 'userName'>,
  viewer?: string,
): string {
  if (server.displayName) return server.displayName;
  if (server.name !== '') return server.name;
  return viewer === undefined || viewer === server.userName
    ? 'Your server'
    : `Server of ${server.userName}`;
}

/** The last lines of a server's or service's output. */
export function outputBlock(lines: readonly string[]): Html {
  return html`<pre class="output" tabindex="0" role="region" aria-label="Last lines of output">${lines.join('\n')}</pre>`;
}
