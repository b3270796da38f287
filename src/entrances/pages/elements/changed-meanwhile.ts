import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { notice } from './notice.ts';

/** What someone else has made of a thing since its form was opened. */
export interface ChangedMeanwhile {
  /** Who; undefined where that cannot be told. */
  readonly by: Html | undefined;
  /** What it is now, by the labels of the form; nothing for one that is gone. */
  readonly now: readonly { readonly label: Phrase; readonly value: HtmlValue }[];
}

/** Stands over the form, which still has what was typed, and the version that there is now. */
export function changedMeanwhile({ by, now }: ChangedMeanwhile, { isDeletion = false } = {}): Html {
  const isGone = now.length === 0;
  return notice(
    'bad',
    html`<p>${by === undefined ? text`This has been changed since you opened it.` : text`This has been changed since you opened it, by ${by}.`} ${isGone ? text`Now there is none.` : text`Now it is:`}</p>
${!isGone && html`<dl class="facts">${now.map(({ label, value }) => html`<dt>${label}</dt><dd>${value === '' ? '–' : value}</dd>`)}</dl>`}
<p>${isDeletion ? text`Nothing was deleted.` : text`Your change was not made, and what you typed is kept. Send it again to go ahead.`}</p>`,
  );
}
