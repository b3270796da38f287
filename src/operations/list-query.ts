import { z } from 'zod';
import type { PageAsked, PageEdge } from '../platform/store/page-edge.ts';

/** Rows on a page of groups, members, holders or shares. */
export const pageLength = 50;
const maxSearchLength = 255;
const maxKeyLength = 300;

const text = z.preprocess((given) => (typeof given === 'string' ? given : ''), z.string());
/** What was searched for, trimmed and no longer than a name. */
export const searchText = text.transform((given) => given.trim().slice(0, maxSearchLength));
const key = z.preprocess(
  (given) => (typeof given === 'string' && given.length <= maxKeyLength ? given : undefined),
  z.string().optional(),
);

/** The query of a page with a list: what was searched for, and which page of it. What cannot be read is left out. */
export const listQuery = z.object({
  search: searchText,
  after: key,
  before: key,
});

export type ListQuery = z.output<typeof listQuery>;

/** The row that a page borders on; undefined for the first page. */
export function edgeOf({
  after,
  before,
}: Pick<ListQuery, 'after' | 'before'>): PageEdge | undefined {
  if (after !== undefined) return { side: 'after', key: after };
  if (before !== undefined) return { side: 'before', key: before };
  return undefined;
}

/** What stores are asked for. */
export function listOptionsOf(query: ListQuery): PageAsked & { readonly nameFilter: string } {
  return { nameFilter: query.search, limit: pageLength, edge: edgeOf(query) };
}
