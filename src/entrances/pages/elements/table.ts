import { type ListPage, lastPage, type PageEdge } from '../../../platform/store/page-edge.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface Column<Item> {
  readonly label: Phrase;
  readonly cell: (item: Item, index: number) => HtmlValue;
  /** `name` is the row's title on a narrow screen, `end` holds its buttons, `tick` a box to tick. */
  readonly style?: 'name' | 'end' | 'tick';
  /** In place of the label, for example a link that sorts. */
  readonly heading?: HtmlValue;
  /** How the rows are sorted by it, if they are. */
  readonly sort?: 'ascending' | 'descending' | undefined;
}

/** A table that becomes a list of labelled rows on a narrow screen. */
export function table<Item>(
  caption: Phrase,
  columns: readonly Column<Item>[],
  items: readonly Item[],
  options: {
    /** `dense` rows are low, and their head stays in sight. */
    readonly style?: 'dense';
    /** Tells rows apart when the page follows what happens. */
    readonly keyOf?: (item: Item) => string;
  } = {},
): Html {
  const { style, keyOf } = options;
  return html`<table class="rows${style && ` ${style}`}">
<caption class="visually-hidden">${caption}</caption>
<thead><tr>${columns.map(heading)}</tr></thead>
<tbody>${items.map((item, index) => html`<tr${keyOf && html` data-key="${keyOf(item)}"`}>${columns.map((column) => cell(column, item, index))}</tr>`)}</tbody>
</table>`;
}

function heading<Item>({ label, heading, style, sort }: Column<Item>): Html {
  if (style === 'end' || style === 'tick') {
    return html`<th scope="col" class="${style}"><span class="visually-hidden">${label}</span></th>`;
  }
  return html`<th scope="col"${sort !== undefined && html` aria-sort="${sort}"`}>${heading ?? label}</th>`;
}

function cell<Item>(column: Column<Item>, item: Item, index: number): Html {
  const content = column.cell(item, index);
  if (column.style !== undefined) return html`<td class="${column.style}">${content}</td>`;
  return html`<td data-label="${column.label}"><div>${content}</div></td>`;
}

/**
 * The head of a column that sorts; once more reverses the order. The minus of an order does that, too.
 */
export function sorting<Name extends string>(
  column: Name,
  label: Phrase,
  list: {
    /** How the list is sorted now. */
    readonly sort: string;
    readonly urlOf: (sort: Name | `-${Name}`) => string;
    /** Whether the order without a minus begins with what is latest. */
    readonly beginsWithLast: boolean;
  },
): Pick<Column<never>, 'label' | 'heading' | 'sort'> {
  const isTurned = list.sort === `-${column}`;
  const link = html`<a href="${list.urlOf(list.sort === column ? `-${column}` : column)}">${label}</a>`;
  if (list.sort !== column && !isTurned) return { label, heading: link };
  const direction = list.beginsWithLast === isTurned ? 'ascending' : 'descending';
  const arrow = direction === 'descending' ? '↓' : '↑';
  return {
    label,
    heading: html`${link} <span aria-hidden="true">${arrow}</span>`,
    sort: direction,
  };
}

export interface PagingView {
  /** Tells it from another on the same page. */
  readonly label?: Phrase;
  /** Where the page itself begins or ends, when it was reached from another. */
  readonly edge?: PageEdge | undefined;
  readonly total: number;
  /** How many the page shows. */
  readonly shown: number;
  /** Of the page at an edge; of the first one without. */
  readonly urlOf: (edge?: PageEdge) => string;
  /** Where the pages before and after this one border on it. */
  readonly borders: PageBorders;
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

/** How much of the list a page shows, and links to the other pages; nothing when there are none. */
export function paging({
  total,
  shown,
  urlOf,
  borders: { first, last },
  label = text`Pages of the list`,
}: PagingView): HtmlValue {
  if (first === undefined && last === undefined) return false;
  const link = (name: Phrase, edge?: PageEdge, rel?: 'prev' | 'next') =>
    html`<a class="button small" href="${urlOf(edge)}"${rel !== undefined && html` rel="${rel}"`}>${name}</a>`;
  return html`<nav class="pages" aria-label="${label}"><span>${text`${shown} of ${total}`}</span><div class="actions">
${first !== undefined && html`${link(text`First`)} ${link(text`Previous`, { side: 'before', key: first }, 'prev')}`}
${last !== undefined && html`${link(text`Next`, { side: 'after', key: last }, 'next')} ${link(text`Last`, lastPage)}`}
</div></nav>`;
}
