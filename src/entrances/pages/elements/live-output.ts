import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, html } from '../html.ts';

/** What a page shows of the output of a service or server. */
export interface LiveOutputView {
  /** Of the API operation that answers with it: lines, a file, or events. */
  readonly url: string;
  /** The last ones, oldest first. */
  readonly lines: readonly string[];
  /** Why they could not be read. */
  readonly problem?: Phrase | undefined;
  /** What is said where nothing has been written. */
  readonly emptyText?: Phrase;
}

/**
 * The last lines of output, newest at the bottom. The script `live-output.js`, which the page has to name, follows
 * what comes, pauses and searches.
 */
export function liveOutput({
  url,
  lines,
  problem = '',
  emptyText = text`Nothing has been written yet.`,
}: LiveOutputView): Html {
  return html`<section class="live-output" id="output" data-output-url="${url}"${scriptTexts} aria-labelledby="output-title">
<header><h2 id="output-title">${text`Output`}</h2>
<div class="actions"><label class="visually-hidden" for="output-search">${text`Show only lines with`}</label>
<input class="input" id="output-search" type="search" placeholder="${text`Show only lines with…`}" autocomplete="off" spellcheck="false" hidden>
<button class="button small" id="output-pause" type="button" hidden>${text`Pause`}</button>
<a class="button small" id="output-download" href="${`${url}?download`}"${lines.length === 0 && html` hidden`}>${text`Download`}</a></div></header>
<div class="output newest-below" tabindex="0" role="region" aria-label="${text`Lines of output, the newest last`}"><pre id="output-lines">${lines.join('\n')}</pre></div>
<p class="output-state soft small" id="output-state" role="status" data-empty="${emptyText}">${problem === '' && lines.length === 0 ? emptyText : problem}</p>
</section>`;
}

/** What the script says; it fills in the numbers itself. */
const scriptTexts = html` data-pause="${text`Pause`}" data-resume="${text`Resume`}" data-ended="${text`The connection has ended.`}" data-skipped-one="${text`[… 1 line not shown]`}" data-skipped="${text`[… ${'{0}'} lines not shown]`}" data-found="${text`${'{0}'} of ${'{1}'} lines.`}" data-below="${text`${'{0}'} more below.`}" data-scroll="${text`${'{0}'} more below: scroll down to continue.`}" data-refused="${text`You may no longer read this, or it is gone. Reload the page.`}" data-busy="${text`Too many pages follow output at once: close some.`}" data-silent="${text`The hub does not answer; trying again.`}"`;
