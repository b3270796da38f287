import { type Html, html } from '../html.ts';

/** Text to take away, such as a new token or an invitation link, with a button that copies it. */
export function copyableText(text: string, label: string): Html {
  const id = `copy-${label.toLowerCase().replace(/[^a-z]+/g, '-')}`;
  return html`<div class="stack"><code class="secret" id="${id}" aria-label="${label}">${text}</code>
<button class="button small" type="button" hidden data-copy="${id}">Copy</button></div>`;
}
