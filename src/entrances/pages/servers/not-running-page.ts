import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import type { ServerFailure } from '../../../workloads/servers/server.ts';
import { csrfField, hiddenFields } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';
import { limitSentence, outputBlock, type ServerSummary, serverTitle } from './server-summary.ts';

export interface NotRunningView {
  readonly layout: FormLayoutProps;
  readonly server: Pick<ServerSummary, 'userName' | 'name' | 'displayName'>;
  /** Why it stopped or did not start; undefined when a user stopped it. */
  readonly failure?: ServerFailure | undefined;
  /** The time limit that stopped it, if one did. */
  readonly stoppedBy?: ServerSummary['stoppedBy'];
  /** What was wrong with the start that was asked for. */
  readonly problem?: Phrase | undefined;
  readonly mayStart: boolean;
  readonly hasSpawnOptions: boolean;
  /** What the browser asked for; it goes there when the server runs. */
  readonly next?: string | undefined;
  /** After how many seconds the page starts the server by itself; left out or 0 for never. */
  readonly startSeconds?: number | undefined;
}

/** The page in place of a server that does not run, with the reason and a start button. */
export function notRunningPage(view: NotRunningView): Html {
  const { layout, server, failure } = view;
  const name = serverTitle(server, layout.user?.name);
  const title =
    failure === undefined ? text`${name} is not running` : text`${name} did not stay up`;
  return focusLayout(layout, {
    title,
    scripts: startSecondsOf(view) > 0 ? ['auto-start.js'] : [],
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${limitSentence(view)} ${leadOf(view)}</p></header>
${view.problem !== undefined && notice('bad', view.problem)}
${failure !== undefined && failureMarkup(view, failure)}
${startControl(view)}
</div>
<p class="aside"><a href="${layout.urls.home}">${text`Back to home`}</a></p>`,
  });
}

/** A start that failed would most likely fail again, and again. */
function startSecondsOf(view: NotRunningView): number {
  const { mayStart, failure, problem, startSeconds = 0 } = view;
  return mayStart && failure === undefined && problem === undefined ? startSeconds : 0;
}

function leadOf(view: NotRunningView): Text {
  const { failure, mayStart, server } = view;
  if (startSecondsOf(view) > 0)
    return text`It starts in a moment, and you get to the page you asked for.`;
  if (!mayStart) return text`Only ${server.userName} or an administrator can start it.`;
  return failure === undefined
    ? text`Start it, and you get to the page you asked for.`
    : text`Your files are untouched. You can try again, or show the reason below to your administrator.`;
}

function failureMarkup({ layout }: NotRunningView, failure: ServerFailure): Html {
  return html`${notice('bad', html`${failure.message} <span class="soft">(${timeElement(failure.at, layout.now)})</span>`)}
${
  failure.output.length > 0 &&
  html`<details class="more" open><summary>${text`The last lines it wrote`}</summary>${outputBlock(failure.output)}</details>`
}`;
}

function startControl(view: NotRunningView): Html {
  const { layout, server, mayStart, hasSpawnOptions, failure, next } = view;
  const seconds = startSecondsOf(view);
  const soon = seconds > 0 && html` data-start-seconds="${seconds}"`;
  if (!mayStart)
    return html`<a class="button primary wide" href="${layout.urls.home}">${text`Go to your home page`}</a>`;
  const action = layout.urls.spawn(server.userName, server.name);
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`;
  if (hasSpawnOptions && failure === undefined) {
    return html`<a class="button primary wide" href="${action + query}"${soon}>${text`Start server…`}</a>`;
  }
  const again = hasSpawnOptions ? text`Try again with the same options` : text`Try again`;
  const label = failure === undefined ? text`Start server` : again;
  // Without options in the form, the last ones count.
  return html`<form method="post" action="${action}"${soon}>${csrfField(layout)}${hiddenFields({ next })}<button class="button primary wide">${label}</button></form>
${hasSpawnOptions && html`<a class="button wide" href="${action + query}">${text`Choose other options…`}</a>`}`;
}
