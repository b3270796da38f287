/**
 * Where a page of a list borders on another: at the row that was last or first there. Rows that come or go meanwhile
 * shift no others past it, and it need not be there any more itself.
 */
export interface PageEdge {
  readonly side: 'after' | 'before';
  /** What the list is sorted by, of that row. */
  readonly key: string;
}

/** One page, how many rows there are on all pages, and whether there are others on either side. */
export interface ListPage<Item> {
  readonly items: Item[];
  readonly total: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** A page that was found by the number of rows before it. */
export function pageAtOffset<Item>(items: Item[], total: number, offset: number): ListPage<Item> {
  return { items, total, isFirst: offset === 0, isLast: offset + items.length >= total };
}

/**
 * Reads the page at an edge. Undefined where it is the first, which has to begin with the first row and not with one
 * that leaves it short.
 *
 * @param read The rows on that side of the edge, the nearest first.
 */
export async function pageAtEdge<Item>(
  { side }: PageEdge,
  limit: number,
  read: (limit: number) => Promise<Item[]>,
): Promise<Omit<ListPage<Item>, 'total'> | undefined> {
  // One more tells whether there are others behind.
  const rows = await read(limit + 1);
  const items = rows.slice(0, limit);
  const isEnd = rows.length <= limit;
  if (side === 'after') return { items, isFirst: false, isLast: isEnd };
  return isEnd ? undefined : { items: items.reverse(), isFirst: false, isLast: false };
}
