import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, html } from '../html.ts';

/** Text to take away, such as a new token or an invitation link, with a button that copies it. */
export function copyableText(secret: string, label: Phrase): Html {
  const id = `copy-${String(label)
    .toLowerCase()
    .replace(/[^a-z]+/g, '-')}`;
  return html`<div class="stack" role="group" aria-label="${label}"><code class="secret" id="${id}">${secret}</code>
<button class="button small" type="button" hidden data-copy="${id}"${copyTexts}>${text`Copy`}</button></div>`;
}

/** What a button with `data-copy` says when it is done. */
export const copyTexts = html` data-copied="${text`Copied`}" data-selected="${text`Selected`}"`;
