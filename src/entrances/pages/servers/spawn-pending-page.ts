import { text } from '../../../platform/texts/text.ts';
import type { SpawnProgress } from '../../../plugin/host/spawn-request.ts';
import { actionForm } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, type HtmlValue, html, safeHref } from '../html.ts';
import { outputBlock, type ServerSummary, serverTitle } from './server-summary.ts';

export interface SpawnPendingView {
  readonly layout: FormLayoutProps;
  readonly server: Pick<ServerSummary, 'userName' | 'name' | 'displayName'>;
  /** 0 to 100. */
  readonly progress: number;
  readonly steps: readonly Step[];
  /** When the start was asked for. */
  readonly since?: Date | undefined;
  /** How long a start usually takes, in milliseconds, without the time in a queue. */
  readonly usualMs?: number | undefined;
  /** Server-sent events: `{progress, message, ready?, failed?}`. */
  readonly eventsUrl: string;
  /** What the server has written, with the API's operation that tells more; left out for who may not see it. */
  readonly output?: { readonly url: string; readonly lines: readonly string[] };
  /** Where the browser goes when the server is ready. */
  readonly readyUrl: string;
}

/** What has been told of a start. */
type Step = Pick<SpawnProgress, 'message' | 'phase'>;

/** How long it has taken so far, and what is usual; progress.js counts on from there, in the same words. */
function timeLine({ layout, since, usualMs, steps }: SpawnPendingView): HtmlValue {
  if (since === undefined) return '';
  const elapsedMs = Math.max(0, layout.now.getTime() - since.getTime());
  const usual = usualMs === undefined ? undefined : Math.max(1, Math.round(usualMs / 1000));
  const isQueued = steps.findLast(({ phase }) => phase !== undefined)?.phase === 'pending';
  const wasQueued = steps.some(({ phase }) => phase === 'pending');
  const soFar = html`<span id="elapsed">${clock(elapsedMs)}</span>`;
  const afterQueue = html`<span id="after-queue"${!wasQueued && html` hidden`}> ${text`after the queue`}</span>`;
  const line =
    usual === undefined
      ? text`${soFar} so far`
      : text`${soFar} so far; usually takes ${clock(usual * 1000)}${afterQueue}`;
  return html`<p class="soft small" id="time" data-elapsed-ms="${elapsedMs}" data-usual-ms="${usualMs ?? ''}"${isQueued && html` data-queued="true"`}>${line}</p>`;
}

/** A time that goes on: `8 s`, `2 min 5 s`, `1 h 12 min`. */
function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** Phases in which the same is told again and again, of which one line shows the last; as in progress.js. */
const repeatedPhases = new Set<SpawnProgress['phase']>(['pending', 'pulling']);

function stepItem({ message, phase }: Step, index: number, steps: readonly Step[]): Html | '' {
  if (phase === undefined || !repeatedPhases.has(phase)) return html`<li>${message}</li>`;
  const isLast = steps.findLastIndex((step) => step.phase === phase) === index;
  return isLast ? html`<li data-phase="${phase}">${message}</li>` : '';
}

/**
 * The page that shows a server starting and leads to it. What grows stands last: the button would move away from
 * under the pointer.
 */
export function spawnPendingPage(view: SpawnPendingView): Html {
  const { layout, server, progress, steps, output, eventsUrl, readyUrl } = view;
  const title = serverTitle(server, layout.user?.name);
  return focusLayout(layout, {
    title: text`Starting`,
    scripts: ['progress.js'],
    reloadSeconds: 3,
    body: html`<div class="panel" data-progress-url="${eventsUrl}" data-ready-url="${safeHref(readyUrl) ?? layout.urls.home}">
<header class="titles"><h1>${text`${title} is starting`}</h1><p class="lead">${text`It opens here by itself as soon as it is ready.`}</p></header>
<progress id="progress" max="100" value="${progress}" aria-label="${text`Progress of the start`}">${progress} %</progress>
${timeLine(view)}
${actionForm(layout, { action: layout.urls.stop(server.userName, server.name), label: text`Cancel the start`, style: 'wide' })}
<div role="log" aria-label="${text`What has happened`}"><ol class="events" id="events">${steps.map(stepItem)}</ol></div>
${
  output !== undefined &&
  html`<div id="start-output" data-output-url="${output.url}"${output.lines.length === 0 && html` hidden`}>${outputBlock(output.lines)}</div>`
}
</div>
<p class="aside">${text`You can leave this page; the server keeps starting. ${html`<a href="${layout.urls.home}">${text`Back to home`}</a>`}`}</p>`,
  });
}

export interface StopPendingView {
  readonly layout: FormLayoutProps;
  readonly server: Pick<ServerSummary, 'userName' | 'name' | 'displayName'>;
}

/** The page shown while a server shuts down. */
export function stopPendingPage({ layout, server }: StopPendingView): Html {
  return focusLayout(layout, {
    title: text`Stopping`,
    scripts: ['live-state.js'],
    reloadSeconds: 3,
    body: html`<div class="panel" id="stopping" data-live-seconds="2">
<header class="titles"><h1>${text`${serverTitle(server, layout.user?.name)} is stopping`}</h1><p class="lead">${text`This page continues by itself when it has stopped. You can start it again then.`}</p></header>
<progress aria-label="${text`Stopping`}"></progress>
<a class="button wide" href="${layout.urls.home}">${text`Back to home`}</a>
</div>`,
  });
}
