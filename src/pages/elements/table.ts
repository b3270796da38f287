import { type Html, type HtmlValue, html } from '../html.ts';

export interface Column<Item> {
  readonly label: string;
  readonly cell: (item: Item) => HtmlValue;
  /** `name` is the row's title on a narrow screen, `end` holds its buttons. */
  readonly style?: 'name' | 'end';
  /** In place of the label, for example a link that sorts. */
  readonly heading?: HtmlValue;
}

/** A table that becomes a list of labelled rows on a narrow screen. */
export function table<Item>(
  caption: string,
  columns: readonly Column<Item>[],
  items: readonly Item[],
): Html {
  return html`<table class="rows">
<caption class="visually-hidden">${caption}</caption>
<thead><tr>${columns.map(heading)}</tr></thead>
<tbody>${items.map((item) => html`<tr>${columns.map((column) => cell(column, item))}</tr>\n`)}</tbody>
</table>`;
}

function heading<Item>({ label, heading, style }: Column<Item>): Html {
  if (style === 'end') {
    return html`<th scope="col" class="end"><span class="visually-hidden">${label}</span></th>`;
  }
  return html`<th scope="col">${heading ?? label}</th>`;
}

function cell<Item>(column: Column<Item>, item: Item): Html {
  const content = column.cell(item);
  if (column.style !== undefined) return html`<td class="${column.style}">${content}</td>`;
  return html`<td data-label="${column.label}"><div>${content}</div></td>`;
}
