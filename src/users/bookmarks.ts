import { nearerEnd } from './nearer-end.ts';

/** The place of a name in a list that is sorted by names. */
export interface Bookmark {
  /** How many names come before it. */
  readonly offset: number;
  readonly name: string;
}

/** How a page of a long list is reached with few rows to walk over. */
interface WayToPage {
  /** Rows to pass over, counted from where the walk begins. */
  readonly offset: number;
  readonly limit: number;
  /** Whether it goes towards the beginning of the list; the rows come in reverse then. */
  readonly isBackwards: boolean;
  /** Where it begins: forwards at this name, backwards before it. Undefined for the beginning or the end of the list. */
  readonly from?: string;
}

/** Bookmarks closer together save next to nothing. */
const leastApart = 500;

/** The shortest way to a page, from either end of the list or a bookmark. */
export function shortestWay(
  { offset, limit }: { readonly offset: number; readonly limit: number },
  total: number,
  bookmarks: readonly Bookmark[],
): WayToPage {
  const { isFromEnd, ...part } = nearerEnd({ offset, limit }, total);
  let shortest: WayToPage = { ...part, isBackwards: isFromEnd };
  const end = Math.min(offset + limit, total);
  if (offset >= end) return shortest;
  for (const { offset: place, name } of bookmarks) {
    const isBackwards = place > offset;
    const walked = isBackwards ? place - end : offset - place;
    // A bookmark within the page leads to a part of it only.
    if (walked < 0 || walked >= shortest.offset) continue;
    shortest = { offset: walked, limit: end - offset, isBackwards, from: name };
  }
  return shortest;
}

/** Adds a bookmark where none is near. */
export function addBookmark(bookmarks: Bookmark[], bookmark: Bookmark): void {
  const isNear = (other: Bookmark) => Math.abs(other.offset - bookmark.offset) < leastApart;
  if (!bookmarks.some(isNear)) bookmarks.push(bookmark);
}
