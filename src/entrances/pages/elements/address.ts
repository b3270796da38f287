import { socketPathOf } from '../../../platform/config/bind-address.ts';
import { type Html, html, joinHtml } from '../html.ts';

/**
 * An address, a Unix socket by its path, which breaks before its port and after its slashes where it has no room in
 * one line.
 */
export function addressElement(url: string): Html {
  const parts = (socketPathOf(url) ?? url).split(/(?=:\d)|(?<=[\w%.~-]\/)(?=.)/);
  return html`<code>${joinHtml(parts, html`<wbr>`)}</code>`;
}
