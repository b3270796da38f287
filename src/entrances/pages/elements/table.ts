import type { Phrase } from '../../../platform/texts/text.ts';
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
<tbody>${items.map((item, index) => html`<tr${keyOf && html` data-key="${keyOf(item)}"`}>${columns.map((column) => cell(column, item, index))}</tr>\n`)}</tbody>
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
