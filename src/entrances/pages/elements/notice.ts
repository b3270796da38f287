import { type Html, type HtmlValue, html } from '../html.ts';
import { icon } from './brand.ts';

const icons = { good: 'done', info: 'refused', warn: 'alert', bad: 'refused' } as const;

/** Shows a short message in a coloured box; screen readers speak a bad one at once. */
export function notice(kind: keyof typeof icons, content: HtmlValue): Html {
  const role = kind === 'bad' ? 'alert' : 'status';
  return html`<div class="notice ${kind}" role="${role}">${icon(icons[kind])}<div>${content}</div></div>`;
}
