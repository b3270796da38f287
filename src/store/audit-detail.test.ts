import { expect, test } from 'vitest';
import { listsForDetails, toDetail } from './audit-detail.ts';

test('names are all in one of the details, however long they are', () => {
  for (const name of ['ada', 'ada.of.the.first.year@university.example', '"'.repeat(150)]) {
    const names = Array.from({ length: 45 }, (_, index) => `${index}-${name}`);
    const lists = listsForDetails(names);
    const kept = lists.map((users) => JSON.parse(toDetail({ users, origin: 'api' })));
    expect(kept.flatMap(({ users }) => users)).toEqual(names);
  }
  expect(listsForDetails(Array.from({ length: 41 }, () => 'ada'))).toHaveLength(3);
  expect(listsForDetails([])).toEqual([[]]);
});
