import { type Html, html } from '../html.ts';

/** What a page shows of the output of a service or server. */
export interface LiveOutputView {
  /** Of the API operation that answers with it: lines, a file, or events. */
  readonly url: string;
  /** The last ones, oldest first. */
  readonly lines: readonly string[];
  /** Why they could not be read. */
  readonly problem?: string | undefined;
  /** What is said where nothing has been written. */
  readonly emptyText?: string;
}

/**
 * The last lines of output, newest at the bottom. The script `live-output.js`, which the page has to name, follows
 * what comes, pauses and searches.
 */
export function liveOutput({
  url,
  lines,
  problem = '',
  emptyText = 'Nothing has been written yet.',
}: LiveOutputView): Html {
  return html`<section class="live-output" id="output" data-output-url="${url}" aria-labelledby="output-title">
<header><h2 id="output-title">Output</h2>
<div class="actions"><label class="visually-hidden" for="output-search">Show only lines with</label>
<input class="input" id="output-search" type="search" placeholder="Show only lines with…" autocomplete="off" spellcheck="false" hidden>
<button class="button small" id="output-pause" type="button" hidden>Pause</button>
<a class="button small" href="${`${url}?download`}">Download</a></div></header>
<div class="output newest-below" tabindex="0" role="region" aria-label="Lines of output, the newest last"><pre id="output-lines">${lines.join('\n')}</pre></div>
<p class="output-state soft small" id="output-state" role="status" data-empty="${emptyText}">${problem === '' && lines.length === 0 ? emptyText : problem}</p>
</section>`;
}
