import type { Context } from 'koa';
import type { PageEdge } from '../../store/page-edge.ts';
import { edgeFields, edgeIn, pageNumberIn } from '../elements/paging.ts';

/** Rows on a page of groups, members or holders. */
export const pageLength = 50;
const longestSearch = 255;

/** The search and the page of an address. */
export function readQuery(ctx: Context) {
  const { search, page, edge } = queryIn(new URLSearchParams(ctx.querystring));
  const offset = (page - 1) * pageLength;
  const options = { nameFilter: search, offset, limit: pageLength, edge };
  return { search, page, edge, options };
}

/** The same of a form that leads back to the page of the list on which its button stood. */
export function queryIn(fields: URLSearchParams) {
  const search = (fields.get('search') ?? '').trim().slice(0, longestSearch);
  return { search, page: pageNumberIn(fields), edge: edgeIn(fields) };
}

export function listUrl(url: string, search: string, page: number, edge?: PageEdge): string {
  const query = new URLSearchParams();
  if (search !== '') query.set('search', search);
  if (page > 1) query.set('page', String(page));
  for (const [name, key] of Object.entries(edgeFields(edge))) query.set(name, key);
  return query.size === 0 ? url : `${url}?${query}`;
}

/** Whether the list became shorter than the page that is asked for. */
export const isPastLast = (items: readonly unknown[], total: number) =>
  items.length === 0 && total > 0;
