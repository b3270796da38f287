import { type Html, type HtmlValue, html } from '../html.ts';
import { icon } from './icons.ts';

const icons = { good: 'done', warn: 'alert', bad: 'refused' } as const;

/** Shows a short message in a coloured box; screen readers speak a bad one at once. */
export function notice(kind: 'good' | 'warn' | 'bad', content: HtmlValue): Html {
  const role = kind === 'bad' ? 'alert' : 'status';
  return html`<div class="notice ${kind}" role="${role}">${icon(icons[kind])}<div>${content}</div></div>`;
}
