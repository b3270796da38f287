import { edgeFields, edgeOf, type ListQuery, listQuery } from '../../../operations/users-query.ts';
import type { ListPage, PageEdge } from '../../../platform/store/page-edge.ts';
import { withQuery } from '../page-urls.ts';
import { bordersOf, type PagingView } from './table.ts';

/** The search and the page of a form that leads back to the page of the list on which its button stood. */
export function queryIn(fields: URLSearchParams) {
  const query = listQuery.parse(Object.fromEntries(fields));
  return { search: query.search, edge: edgeOf(query) };
}

export function listUrl(url: string, search: string, edge?: PageEdge): string {
  return withQuery(url, { search: search || undefined, ...edgeFields(edge) });
}

/** The links from a page of the list at an address to the others. */
export function pagesOf<Item>(
  url: string,
  { query, found }: { readonly query: ListQuery; readonly found: ListPage<Item> },
  keyOf: (item: Item) => string,
): PagingView {
  return {
    edge: edgeOf(query),
    total: found.total,
    shown: found.items.length,
    borders: bordersOf(found, keyOf),
    urlOf: (edge) => listUrl(url, query.search, edge),
  };
}
