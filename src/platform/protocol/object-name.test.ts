import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { objectName } from './object-name.ts';

test('a plain name stays as it is', () => {
  expect(objectName('ann', '')).toBe('ann');
  expect(objectName('ann', 'lab')).toBe('ann---lab');
  expect(objectName('ann-lab', '')).toBe('ann-lab');
});

test('every other name becomes a label with a readable part', () => {
  expect(objectName('Ann.B@x.org', '')).toMatch(/^u-ann-b-x-org--[a-z2-7]{26}$/);
  expect(objectName('a'.repeat(63), 'lab')).toMatch(/^a{20}----[a-z2-7]{26}$/);
});

test('names made to collide do not', () => {
  const [, hash = ''] = /--(.*)$/.exec(objectName('X', '')) ?? [];
  expect(objectName('u-x', hash)).not.toBe(objectName('X', ''));
  const pairs = [
    ['a-b', ''],
    ['a', 'b'],
    ['a-', 'b'],
    ['A', 'b'],
    ['a/b', ''],
    ['b/a', ''],
    ['a--b', ''],
    ['a---b', ''],
  ] as const;
  expect(new Set(pairs.map(([user, server]) => objectName(user, server))).size).toBe(pairs.length);
});

test('any two servers have two names, each a DNS label of at most 50 characters', () => {
  const userName = fc.oneof(
    fc.string({ minLength: 1, maxLength: 80 }),
    fc.stringMatching(/^[a-z0-9-]{1,70}$/),
  );
  const serverName = fc.oneof(fc.constant(''), fc.stringMatching(/^[a-z](?:-?[a-z0-9]){0,14}$/));
  const server = fc.tuple(userName, serverName);
  fc.assert(
    fc.property(server, server, (one, other) => {
      expect(objectName(...one)).toMatch(/^(?=.{1,50}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/);
      if (one.join('\n') === other.join('\n')) return;
      expect(objectName(...one)).not.toBe(objectName(...other));
    }),
    runs(2000),
  );
});
