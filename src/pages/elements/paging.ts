import { type Phrase, text } from '../../texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { formatNumber } from './quantity.ts';

export interface PagingView {
  /** Tells it from another on the same page. */
  readonly label?: Phrase;
  /** From 1. */
  readonly page: number;
  readonly size: number;
  readonly total: number;
  /** How many the page shows. */
  readonly shown: number;
  readonly urlOf: (page: number) => string;
}

/** The number of the last page, from 1. */
export function lastPageOf(total: number, size: number): number {
  return Math.max(Math.ceil(total / size), 1);
}

/** The number of a page in an address or a form, from 1; that of the first one for anything else. */
export function pageNumberIn(fields: URLSearchParams, name = 'page'): number {
  const number = fields.get(name) ?? '';
  return /^\d{1,7}$/.test(number) ? Math.max(Number(number), 1) : 1;
}

/** The part of a list that stands on a page. */
export function onPage<Item>(items: readonly Item[], page: number, size: number): readonly Item[] {
  return items.slice((page - 1) * size, page * size);
}

/** What a page of a list shows of the whole, and links to the other pages; nothing when there are none. */
export function paging({
  page,
  size,
  total,
  shown,
  urlOf,
  label = text`Pages of the list`,
}: PagingView): HtmlValue {
  const last = lastPageOf(total, size);
  if (last === 1 && page === 1) return false;
  const first = (page - 1) * size + 1;
  const numbers = [1, page - 2, page - 1, page, page + 1, page + 2, last];
  const offered = [...new Set(numbers.filter((number) => number >= 1 && number <= last))];
  return html`<nav class="pages" aria-label="${label}"><span>${text`${first}–${first + shown - 1} of ${total}`}</span><div class="actions">
${page > 1 && html`<a class="button small" href="${urlOf(page - 1)}" rel="prev">${text`Previous`}</a>`}
${offered.map((number, index) => html`${number - (offered[index - 1] ?? number) > 1 && html`<span aria-hidden="true">…</span>`}${pageLink(number, number === page, urlOf)}`)}
${page < last && html`<a class="button small" href="${urlOf(page + 1)}" rel="next">${text`Next`}</a>`}
</div></nav>`;
}

function pageLink(number: number, isCurrent: boolean, urlOf: (page: number) => string): Html {
  return html`<a class="page-number" href="${urlOf(number)}" aria-label="${text`Page ${number}`}"${isCurrent && html` aria-current="page"`}>${formatNumber(number)}</a>`;
}
