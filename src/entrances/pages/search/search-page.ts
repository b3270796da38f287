import { type Phrase, text } from '../../../platform/texts/text.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { searchForm } from '../elements/search-form.ts';
import { type Html, html } from '../html.ts';

/** What a search leads to. */
export interface SearchResult {
  readonly title: Phrase;
  /** What it is. */
  readonly kind: Phrase;
  readonly url: string;
  /** By which a field knows it whose names are completed. */
  readonly named?: {
    readonly type: 'user' | 'group' | 'service' | 'server';
    readonly name: string;
  };
}

export interface SearchView {
  readonly layout: LayoutProps;
  readonly search: string;
  readonly results: readonly SearchResult[];
}

/** The search of everything, for browsers without scripts and for more than one look. */
export function searchPage({ layout, search, results }: SearchView): Html {
  return pageLayout(layout, {
    title: text`Search`,
    body: html`${pageHead(text`Search`)}
${searchForm(layout.urls.search, { label: text`Type a name or an action`, search })}
${
  results.length === 0
    ? html`<p class="empty">${text`Nothing found.`}</p>`
    : html`<ul class="list">${results.map(
        ({ title, kind, url }) =>
          html`<li><div class="what"><a href="${url}">${title}</a><p>${kind}</p></div></li>`,
      )}</ul>`
}`,
  });
}
