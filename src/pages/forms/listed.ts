import { edgeOf, type ListQuery, pageLength } from '../../operations/list-query.ts';
import type { ListPage } from '../../store/page-edge.ts';
import { isPastLast, listUrl, pagingOf } from '../elements/list-query.ts';
import { lastPageOf, type PagingView } from '../elements/paging.ts';
import type { Html } from '../html.ts';

/** Draws a page of a list with the links to the others; leads to the last one where it became shorter. */
export function listed<Item>(
  url: string,
  { query, found }: { readonly query: ListQuery; readonly found: ListPage<Item> },
  keyOf: (item: Item) => string,
  draw: (paging: PagingView) => Html,
): Html | { readonly redirect: string } {
  const { search, page } = query;
  const { items, total } = found;
  const urlOf: PagingView['urlOf'] = (number, edge) => listUrl(url, search, number, edge);
  if (isPastLast(items, total)) return { redirect: urlOf(lastPageOf(total, pageLength)) };
  return draw(pagingOf({ page, edge: edgeOf(query) }, found, keyOf, urlOf));
}
