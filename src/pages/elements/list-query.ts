import { edgeOf, listQuery, pageLength } from '../../operations/list-query.ts';
import type { ListPage, PageEdge } from '../../store/page-edge.ts';
import { bordersOf, edgeFields, type PagingView } from './paging.ts';

/** The search and the page of a form that leads back to the page of the list on which its button stood. */
export function queryIn(fields: URLSearchParams) {
  const query = listQuery.parse(Object.fromEntries(fields));
  return { search: query.search, page: query.page, edge: edgeOf(query) };
}

export function listUrl(url: string, search: string, page: number, edge?: PageEdge): string {
  const query = new URLSearchParams();
  if (search !== '') query.set('search', search);
  if (page > 1) query.set('page', String(page));
  for (const [name, key] of Object.entries(edgeFields(edge))) query.set(name, key);
  return query.size === 0 ? url : `${url}?${query}`;
}

/** The links from a page of a list to the others. */
export function pagingOf<Item>(
  { page, edge }: Pick<ReturnType<typeof queryIn>, 'page' | 'edge'>,
  found: ListPage<Item>,
  keyOf: (item: Item) => string,
  urlOf: PagingView['urlOf'],
): PagingView {
  const { items, total } = found;
  const borders = bordersOf(found, keyOf);
  return { page, edge, size: pageLength, total, shown: items.length, borders, urlOf };
}

/** What a form says to lead back to the page of the list on which it stands. */
export function placeFields({ page, edge }: Pick<PagingView, 'page' | 'edge'>) {
  return { page: page > 1 ? String(page) : undefined, ...edgeFields(edge) };
}

/** Whether the list became shorter than the page that is asked for. */
export const isPastLast = (items: readonly unknown[], total: number) =>
  items.length === 0 && total > 0;
