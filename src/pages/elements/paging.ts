import type { ListPage, PageEdge } from '../../store/page-edge.ts';
import { type Phrase, text } from '../../texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { formatNumber } from './quantity.ts';

export interface PagingView {
  /** Tells it from another on the same page. */
  readonly label?: Phrase;
  /** From 1. */
  readonly page: number;
  /** Where it begins or ends, when it was reached from a neighbour. */
  readonly edge?: PageEdge | undefined;
  readonly size: number;
  readonly total: number;
  /** How many the page shows. */
  readonly shown: number;
  readonly urlOf: (page: number, edge?: PageEdge) => string;
  /** Where the pages before and after this one border on it; they are found by their numbers without. */
  readonly borders?: PageBorders | undefined;
}

/** The keys of the first and the last row of a page; undefined where there is no page on that side. */
export interface PageBorders {
  readonly first: string | undefined;
  readonly last: string | undefined;
}

/** Where a page of a list borders on others. */
export function bordersOf<Item>(
  { items, isFirst, isLast }: Omit<ListPage<Item>, 'total'>,
  keyOf: (item: Item) => string,
): PageBorders {
  const keyAt = (index: number) => {
    const item = items.at(index);
    return item && keyOf(item);
  };
  return { first: isFirst ? undefined : keyAt(0), last: isLast ? undefined : keyAt(-1) };
}

const longestKey = 300;

/** The edge that an address or a form names; none where it can be no key. The prefix is that of the list's fields. */
export function edgeIn(given: URLSearchParams, prefix = ''): PageEdge | undefined {
  for (const side of ['after', 'before'] as const) {
    const key = given.get(prefix + side);
    if (key !== null && key.length <= longestKey) return { side, key };
  }
  return undefined;
}

/** The same as fields of an address or a form. */
export function edgeFields(edge: PageEdge | undefined, prefix = ''): Record<string, string> {
  return edge === undefined ? {} : { [prefix + edge.side]: edge.key };
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

/** What a page of a list shows of the whole, and links to the other pages; nothing when there are none. */
export function paging(view: PagingView): HtmlValue {
  const { size, total, shown, urlOf, label = text`Pages of the list`, borders } = view;
  const { page, hasPrevious, hasNext } = neighboursOf(view);
  const last = Math.max(lastPageOf(total, size), hasNext ? page + 1 : page);
  if (last === 1) return false;
  // Rows that came or went since the first page was shown have moved the others.
  const latest = total - shown + (hasNext ? 0 : 1);
  const isAtEnd = borders !== undefined && !hasNext;
  const first = Math.max(isAtEnd ? latest : Math.min((page - 1) * size + 1, latest), 1);
  const numbers = [1, page - 2, page - 1, page, page + 1, page + 2, last];
  const offered = [...new Set(numbers.filter((number) => number >= 1 && number <= last))];
  const edge = (side: PageEdge['side'], key: string | undefined) =>
    key === undefined ? undefined : { side, key };
  return html`<nav class="pages" aria-label="${label}"><span>${text`${first}–${first + shown - 1} of ${total}`}</span><div class="actions">
${hasPrevious && html`<a class="button small" href="${urlOf(Math.max(page - 1, 1), edge('before', borders?.first))}" rel="prev">${text`Previous`}</a>`}
${offered.map((number, index) => html`${number - (offered[index - 1] ?? number) > 1 && html`<span aria-hidden="true">…</span>`}${pageLink(number, number === page, urlOf)}`)}
${hasNext && html`<a class="button small" href="${urlOf(page + 1, edge('after', borders?.last))}" rel="next">${text`Next`}</a>`}
</div></nav>`;
}

/** The number of the page, and on which sides there are others. */
function neighboursOf({ page, size, total, borders }: PagingView) {
  if (borders === undefined) {
    return { page, hasPrevious: page > 1, hasNext: page < lastPageOf(total, size) };
  }
  const hasPrevious = borders.first !== undefined;
  return {
    page: hasPrevious ? Math.max(page, 2) : 1,
    hasPrevious,
    hasNext: borders.last !== undefined,
  };
}

function pageLink(number: number, isCurrent: boolean, urlOf: (page: number) => string): Html {
  return html`<a class="page-number" href="${urlOf(number)}" aria-label="${text`Page ${number}`}"${isCurrent && html` aria-current="page"`}>${formatNumber(number)}</a>`;
}
