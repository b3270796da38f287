import type { LoadSeries } from '../../../platform/metrics/load-history.ts';
import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import type { ServerState } from '../../../workloads/servers/server.ts';
import type { ComingStop, LimitKind } from '../../../workloads/servers/time-limits.ts';
import { actionForm, csrfField, hiddenFields } from '../elements/form.ts';
import type { FormLayoutProps, LayoutProps } from '../elements/layout-props.ts';
import { setDuration, timeElement } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

/** What the pages show of a user's server. */
export interface ServerSummary {
  readonly userName: string;
  /** Empty for the default server. */
  readonly name: string;
  readonly displayName?: string | undefined;
  readonly state: ShownServerState;
  /** What it was started with the last time, where that can be chosen still. */
  readonly lastChoice?: Phrase | undefined;
  /** Where it is opened: `/user/alice/`. */
  readonly url: string;
  readonly startedAt?: Date | undefined;
  /** When its last run ended, once it has. */
  readonly stoppedAt?: Date | undefined;
  readonly lastActivityAt?: Date | undefined;
  /** Why the last start or run failed. */
  readonly failure?: Phrase | undefined;
  /** How busy it was in the last hour, as far as it is known here. */
  readonly load?: LoadSeries | undefined;
  /** Since when nothing is known of it. */
  readonly unreachableSince?: Date | undefined;
  /** When a time limit stops it, unless it is used until then. */
  readonly comingStop?: ComingStop | undefined;
  /** Until when its user keeps it running though it is idle. */
  readonly keptUntil?: Date | undefined;
  /** Since when it is paused. */
  readonly pausedAt?: Date | undefined;
  /** Whether a file browser runs in its place, because its home is full. */
  readonly isRescue?: boolean | undefined;
  /** The time limit that ended its last run. */
  readonly stoppedBy?: { readonly reason: LimitKind; readonly seconds: number } | undefined;
}

/**
 * Where a server is in its life, that it ended without being stopped, or that the instance of the hub that
 * runs it is away.
 */
export type ShownServerState = ServerState | 'failed' | 'unreachable';

const words = {
  stopped: ['', text`Stopped`],
  starting: ['warn', text`Starting`],
  running: ['good', text`Running`],
  stopping: ['warn', text`Stopping`],
  failed: ['bad', text`Failed`],
  unreachable: ['bad', text`Unreachable`],
} as const satisfies Record<ShownServerState, readonly [string, Text]>;

/** What a person can do about an unreachable server. */
export const unreachableHint = text`It comes back with its machine. If you cannot wait, forget it and start a new one elsewhere; what it had not saved is lost.`;

/** The state of a server as a coloured dot and a word. */
export function serverStatus({ state, pausedAt }: Pick<ServerSummary, 'state' | 'pausedAt'>): Html {
  const isPaused = state === 'running' && pausedAt !== undefined;
  const [kind, word] = isPaused ? (['', text`Paused`] as const) : words[state];
  return html`<span class="status ${kind}">${word}</span>`;
}

/** The same as a word alone. */
export function stateWord(state: ShownServerState): Text {
  return words[state][1];
}

/** Whether a page with these servers should follow what happens to them. */
export function isChanging(servers: readonly ServerSummary[]): boolean {
  return servers.some(({ state }) => state === 'starting' || state === 'stopping');
}

/** Says which time limit stopped a server; nothing where none did. */
export function limitSentence({ stoppedBy }: Pick<ServerSummary, 'stoppedBy'>): Phrase {
  if (stoppedBy === undefined) return '';
  if (stoppedBy.reason === 'budget') return text`It was stopped because a budget is used up.`;
  const time = setDuration(stoppedBy.seconds);
  return stoppedBy.reason === 'idle_timeout'
    ? text`It was stopped after ${time} without activity.`
    : text`It was stopped ${time} after its start, the longest it may run.`;
}

/** What is said where a file browser runs in place of a server. */
export const rescueSentence = text`The home has no room left, so a file browser runs in place of the server. Open it, remove what is not needed, then restart the server.`;

/** Whether the user of a server is to be warned that a time limit stops it. */
export function isAboutToStop(
  {
    layout,
    limitWarningSeconds = 0,
  }: { readonly layout: LayoutProps; readonly limitWarningSeconds?: number | undefined },
  { comingStop }: ServerSummary,
): boolean {
  if (comingStop === undefined) return false;
  return comingStop.at.getTime() - layout.now.getTime() <= limitWarningSeconds * 1000;
}

/** The button that keeps a server; nothing where its age stops it. */
export function extendForm(
  layout: FormLayoutProps,
  { userName, name, comingStop }: ServerSummary,
  button: {
    readonly label: Phrase;
    readonly accessibleLabel?: Phrase;
    readonly style?: string;
    /** The page to come back to; home when left out. */
    readonly returnTo?: string;
  },
): HtmlValue {
  if (comingStop?.reason !== 'idle_timeout') return '';
  const { returnTo, ...rest } = button;
  const fields = { return_to: returnTo };
  return actionForm(layout, { action: layout.urls.extend(userName, name), ...rest, fields });
}

const hour = 3600;
const keepChoices = [hour, 4 * hour, 8 * hour, 24 * hour, 72 * hour, 168 * hour];

/** Buttons that keep an idle server running for a time, up to the longest allowed; nothing where its age stops it. */
export function keepForm(
  layout: FormLayoutProps,
  { userName, name, comingStop, keptUntil }: ServerSummary,
  maxSeconds: number,
): HtmlValue {
  if (maxSeconds === 0 || (comingStop?.reason !== 'idle_timeout' && keptUntil === undefined))
    return '';
  const allowed = keepChoices.filter((seconds) => seconds <= maxSeconds);
  const button = (seconds: number, label: Phrase, accessibleLabel: Phrase) =>
    html`<button class="button small" name="keep" value="${seconds}" aria-label="${accessibleLabel}">${label}</button>`;
  return html`<form class="row" method="post" action="${layout.urls.extend(userName, name)}">${csrfField(layout)}${hiddenFields({ return_to: layout.urls.server(userName, name) })}<span class="soft">${text`Keep it running for`}</span>${(
    allowed.length === 0 ? [maxSeconds] : allowed
  ).map((seconds) => {
    const time = setDuration(seconds);
    return button(seconds, time, text`Keep it running for ${time}`);
  })}${keptUntil !== undefined && button(0, text`No longer`, text`Keep it running no longer`)}</form>`;
}

/** Says when a time limit stops a server that runs. */
export function comingStopSentence({ comingStop, pausedAt }: ServerSummary, now: Date): HtmlValue {
  if (pausedAt !== undefined) {
    return text`It was paused ${timeElement(pausedAt, now)} because it was idle; it goes on as soon as it is opened.`;
  }
  if (comingStop === undefined) return '';
  const when = timeElement(comingStop.at, now);
  return comingStop.reason === 'idle_timeout'
    ? text`It will be stopped ${when} unless it is used.`
    : text`It will be stopped ${when}, when it has run as long as it may.`;
}

/** The name by which a person knows a server. */
export function serverTitle(
  server: Pick<ServerSummary, 'name' | 'displayName' | 'userName'>,
  viewer?: string,
): Phrase {
  if (server.displayName) return server.displayName;
  if (server.name !== '') return server.name;
  return viewer === undefined || viewer === server.userName
    ? text`Your server`
    : text`Server of ${server.userName}`;
}

/** The last lines of a server's or service's output. */
export function outputBlock(lines: readonly string[]): Html {
  return html`<pre class="output" tabindex="0" role="region" aria-label="${text`Last lines of output`}">${lines.join('\n')}</pre>`;
}
