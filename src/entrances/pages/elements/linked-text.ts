import {
  joined,
  type LocalizedText,
  localizedPhrase,
  phraseIn,
  written,
} from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

const webAddress = /https?:\/\/[^\s<>"'`{}|\\^]+/g;
/** What ends a sentence, not an address. */
const trailing = /[.,;:!?)\]]+$/;

/** Plain text whose web addresses can be followed; the site there learns nothing of this page. */
export function linkedText(own: LocalizedText): HtmlValue {
  const phrase = localizedPhrase(own);
  if (typeof phrase === 'string') return withLinks(phrase);
  return written((language) => joined([withLinks(phraseIn(phrase, language))]));
}

function withLinks(text: string): Html {
  const parts: Html[] = [];
  let at = 0;
  for (const match of text.matchAll(webAddress)) {
    const address = match[0].replace(trailing, '');
    if (!URL.canParse(address)) continue;
    parts.push(
      html`${text.slice(at, match.index)}<a href="${address}" rel="noopener noreferrer">${address}</a>`,
    );
    at = match.index + address.length;
  }
  return html`${parts}${text.slice(at)}`;
}
