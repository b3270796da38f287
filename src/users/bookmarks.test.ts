import { expect, test } from 'vitest';
import { addBookmark, type Bookmark, shortestWay } from './bookmarks.ts';

const names = Array.from({ length: 100 }, (_, index) => `user-${String(index).padStart(2, '0')}`);
const at = (offset: number): Bookmark => ({ offset, name: names[offset] ?? '' });

/** What a database answers. */
function walk({ offset, limit, isBackwards, from }: ReturnType<typeof shortestWay>): string[] {
  const rows = names.filter(
    (name) => from === undefined || (isBackwards ? name < from : name >= from),
  );
  if (isBackwards) rows.reverse();
  const page = rows.slice(offset, offset + limit);
  return isBackwards ? page.reverse() : page;
}

test.each([
  ['no bookmark', []],
  ['one', [at(40)]],
  ['several, in any order', [at(73), at(0), at(31), at(99)]],
])('the way to each page leads to the same names with %s', (_, bookmarks) => {
  for (const limit of [1, 7, 30, 200]) {
    for (let offset = 0; offset <= 110; offset += 1) {
      const way = shortestWay({ offset, limit }, names.length, bookmarks);
      expect(walk(way), `${offset}, ${limit}`).toEqual(names.slice(offset, offset + limit));
    }
  }
});

test('the shortest way begins at the nearest bookmark or end', () => {
  const way = (offset: number) => shortestWay({ offset, limit: 5 }, 100, [at(40), at(60)]);
  expect(way(3)).toEqual({ offset: 3, limit: 5, isBackwards: false });
  expect(way(42)).toEqual({ offset: 2, limit: 5, isBackwards: false, from: 'user-40' });
  expect(way(53)).toEqual({ offset: 2, limit: 5, isBackwards: true, from: 'user-60' });
  expect(way(94)).toEqual({ offset: 1, limit: 5, isBackwards: true });
});

test('bookmarks are never close together, so that a list has few', () => {
  const bookmarks: Bookmark[] = [];
  for (let offset = 0; offset < 10_000; offset += 50) addBookmark(bookmarks, { offset, name: 'x' });
  expect(bookmarks.map(({ offset }) => offset)).toEqual(
    Array.from({ length: 20 }, (_, index) => index * 500),
  );
});
