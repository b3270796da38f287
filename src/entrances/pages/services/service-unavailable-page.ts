import { type Phrase, text } from '../../../platform/texts/text.ts';
import { focusLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

/** Why a service cannot be opened. */
export type Unavailability =
  | { readonly kind: 'starting' | 'crash_looping' }
  /** An administrator stopped it. */
  | { readonly kind: 'stopped'; readonly at: Date }
  /** It does not answer, for longer than a start takes. */
  | { readonly kind: 'silent'; readonly since: Date };

export interface ServiceUnavailableView {
  readonly layout: LayoutProps;
  readonly serviceName: Phrase;
  readonly why: Unavailability;
  /** Who looks after it. */
  readonly contact?: Phrase | undefined;
  readonly retryAfterSeconds: number;
  /** The address asked for; the button asks for it again. */
  readonly url: string;
}

/** The 503 page of a service that is not ready; it tries again by itself. */
export function serviceUnavailablePage(view: ServiceUnavailableView): Html {
  const { layout, serviceName: name, why, retryAfterSeconds, url } = view;
  const title = why.kind === 'stopped' ? text`${name} is stopped` : text`${name} is not ready`;
  return focusLayout(layout, {
    title,
    scripts: ['retry.js'],
    reloadSeconds: retryAfterSeconds,
    body: html`<div class="panel" data-retry-seconds="${retryAfterSeconds}">
<header class="titles"><h1>${title}</h1><p class="lead">${reason(view)}</p></header>
${why.kind === 'starting' && html`<progress aria-label="${text`Waiting for ${name}`}"></progress>`}
<p class="soft">${text`This page tries again by itself.`}</p>
<a class="button primary wide" href="${url}">${text`Try now`}</a>
</div>
<p class="aside"><a href="${layout.urls.home}">${text`Back to home`}</a></p>`,
  });
}

function reason({ layout: { now }, why, contact }: ServiceUnavailableView): HtmlValue {
  const whom = contact === undefined ? text`your administrator` : html`<strong>${contact}</strong>`;
  switch (why.kind) {
    case 'starting':
      return text`It is starting or was just restarted. That rarely takes longer than a few seconds.`;
    case 'crash_looping':
      return text`It has stopped several times in a row. The hub keeps restarting it; if this lasts, tell ${whom}.`;
    case 'stopped':
      return text`It was stopped by an administrator ${timeElement(why.at, now)}, and comes back when an administrator starts it. If you need it, ask ${whom}.`;
    case 'silent':
      return text`It stopped responding ${timeElement(why.since, now)}. The hub keeps trying; if you need it, ask ${whom}.`;
  }
}
