import { type Html, html, joinHtml } from '../html.ts';

/** An address, which breaks before its port and after its slashes where it has no room in one line. */
export function addressElement(url: string): Html {
  const parts = url.split(/(?=:\d)|(?<=[\w%.~-]\/)(?=.)/);
  return html`<code>${joinHtml(parts, html`<wbr>`)}</code>`;
}
