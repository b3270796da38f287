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

/** Which page of a list is asked for. */
export interface PageAsked {
  readonly offset: number;
  readonly limit: number;
  /** Counts instead of the offset where it is given. */
  readonly edge?: PageEdge | undefined;
}

/**
 * Reads a page. Where no full page is before an edge it is the first page: that begins with the first row, and not
 * with one that leaves it short.
 */
export async function readPage<Item>(
  { offset, limit, edge }: PageAsked,
  total: number,
  read: {
    readonly atOffset: (offset: number) => Promise<Item[]>;
    /** So many rows on that side of the edge, the nearest first. */
    readonly atEdge: (edge: PageEdge, limit: number) => Promise<Item[]>;
  },
): Promise<ListPage<Item>> {
  if (edge !== undefined) {
    // One more tells whether there are others behind.
    const rows = await read.atEdge(edge, limit + 1);
    const items = rows.slice(0, limit);
    const isEnd = rows.length <= limit;
    if (edge.side === 'after') return { items, total, isFirst: false, isLast: isEnd };
    if (!isEnd) return { items: items.reverse(), total, isFirst: false, isLast: false };
  }
  const from = edge === undefined ? offset : 0;
  const items = await read.atOffset(from);
  return { items, total, isFirst: from === 0, isLast: from + items.length >= total };
}

/** The same of a list at hand, in its order; `compare` is negative for what is before the edge and positive for what is after it. */
export function readPageOf<Item>(
  items: readonly Item[],
  asked: PageAsked,
  compare: (item: Item) => number,
): Promise<ListPage<Item>> {
  return readPage(asked, items.length, {
    atOffset: async (offset) => items.slice(offset, offset + asked.limit),
    async atEdge({ side }, most) {
      if (side === 'after') return items.filter((item) => compare(item) > 0).slice(0, most);
      return items
        .filter((item) => compare(item) < 0)
        .reverse()
        .slice(0, most);
    },
  });
}
