/**
 * Where a page of a list borders on another: at the row that was last or first there. Rows that come or go meanwhile
 * shift no others past it, and it need not be there any more itself.
 */
export interface PageEdge {
  readonly side: 'after' | 'before';
  /** What the list is sorted by, of that row; empty for either end of the list. */
  readonly key: string;
}

/** The last page of a list. */
export const lastPage: PageEdge = { side: 'before', key: '' };

/** One page, how many rows there are on all pages, and whether there are others on either side. */
export interface ListPage<Item> {
  readonly items: Item[];
  readonly total: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** Which page of a list is asked for; the first one without an edge. */
export interface PageAsked {
  readonly limit: number;
  readonly edge?: PageEdge | undefined;
}

/** The same of a list of JupyterHub's API, which leaves out so many rows from the beginning. */
export interface OffsetPageAsked extends PageAsked {
  readonly offset?: number;
}

/** Which rows make a page. */
interface Walk<Place> {
  /** Towards the beginning of the list: the nearest row comes first. */
  readonly isBackwards: boolean;
  /** Only rows beyond it; undefined for all of them. */
  readonly place: Place | undefined;
  readonly offset: number;
  readonly limit: number;
}

/**
 * Reads a page. Where no full page is before an edge it is the first page: that begins with the first row, and not
 * with one that leaves it short. Where nothing is after an edge any more it is the last page. A key that `placeOf`
 * cannot read is passed over.
 */
export async function readPage<Item, Place>(
  { limit, edge, offset = 0 }: OffsetPageAsked,
  total: number,
  list: {
    readonly placeOf: (key: string) => Place | undefined;
    readonly read: (walk: Walk<Place>) => Promise<Item[]>;
  },
): Promise<ListPage<Item>> {
  const isOfEnd = edge?.key === '';
  const place = edge === undefined || isOfEnd ? undefined : list.placeOf(edge.key);
  const isBackwards = edge?.side === 'before' && (isOfEnd || place !== undefined);
  // One more tells whether there are others behind.
  const from = place === undefined && !isBackwards ? offset : 0;
  const rows = await list.read({ isBackwards, place, offset: from, limit: limit + 1 });
  const items = rows.slice(0, limit);
  const isEnd = rows.length <= limit;
  if (isBackwards) {
    if (isEnd && place !== undefined) return readPage({ limit }, total, list);
    return { items: items.reverse(), total, isFirst: isEnd, isLast: place === undefined };
  }
  if (place === undefined) return { items, total, isFirst: from === 0, isLast: isEnd };
  if (items.length === 0) return readPage({ limit, edge: lastPage }, total, list);
  return { items, total, isFirst: false, isLast: isEnd };
}

/** The same of a list at hand, in its order; `compare` is negative for what is before a place and positive for what is after it. */
export function readPageOf<Item, Place>(
  items: readonly Item[],
  asked: PageAsked,
  {
    placeOf,
    compare,
  }: {
    readonly placeOf: (key: string) => Place | undefined;
    readonly compare: (item: Item, place: Place) => number;
  },
): Promise<ListPage<Item>> {
  return readPage(asked, items.length, {
    placeOf,
    async read({ isBackwards, place, limit }) {
      const ordered = isBackwards ? items.toReversed() : items;
      const side = isBackwards ? -1 : 1;
      const isPastEdge = (item: Item) => place === undefined || compare(item, place) * side > 0;
      return ordered.filter(isPastEdge).slice(0, limit);
    },
  });
}
