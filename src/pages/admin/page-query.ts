import type { Context } from 'koa';
import { pageNumberIn } from '../elements/paging.ts';

/** Rows on a page of groups, members or holders. */
export const pageLength = 50;
const longestSearch = 255;

/** The search and the page of an address. */
export function readQuery(ctx: Context) {
  const { search, page } = queryIn(new URLSearchParams(ctx.querystring));
  const options = { nameFilter: search, offset: (page - 1) * pageLength, limit: pageLength };
  return { search, page, options };
}

/** The same of a form that leads back to the page of the list on which its button stood. */
export function queryIn(fields: URLSearchParams) {
  const search = (fields.get('search') ?? '').trim().slice(0, longestSearch);
  return { search, page: pageNumberIn(fields) };
}

export function listUrl(url: string, search: string, page: number): string {
  const query = new URLSearchParams();
  if (search !== '') query.set('search', search);
  if (page > 1) query.set('page', String(page));
  return query.size === 0 ? url : `${url}?${query}`;
}

/** Whether the list became shorter than the page that is asked for. */
export const isPastLast = (items: readonly unknown[], total: number) =>
  items.length === 0 && total > 0;
