import { expect, test } from 'vitest';
import { z } from 'zod';
import { declaredOf, passedOverAt, searchOf } from './declared-query.ts';

const operation = { query: z.object({ search: z.string(), show: z.string() }) };
const at = (querystring: string) => ({
  path: '/hub/list',
  querystring,
  query: Object.fromEntries(new URLSearchParams(querystring)),
});

test('what the operation and the page declare is read, and nothing else', () => {
  const declared = declaredOf(operation, { query: ['name'] });
  const asked = at('search=a&nmae=b&name=c&name=d');
  expect(String(searchOf(asked, declared))).toBe('search=a&name=c&name=d');
  expect(passedOverAt(asked, declared)).toEqual({
    names: ['nmae'],
    meant: { names: ['name'], url: '/hub/list?search=a&name=c&name=d' },
  });
});

test('a page whose parameters others name takes each', () => {
  const declared = declaredOf(operation, { query: 'any' });
  expect(String(searchOf(at('anything=a'), declared))).toBe('anything=a');
  expect(passedOverAt(at('serach=a'), declared)).toBeUndefined();
});

test('no more than three names are shown, and none that is no word', () => {
  const declared = declaredOf(operation);
  expect(passedOverAt(at('a=&b=&c=&d=&e='), declared)?.names).toEqual(['a', 'b', 'c', '…']);
  expect(passedOverAt(at(`call%20555=&${'x'.repeat(40)}=`), declared)?.names).toEqual(['…']);
  expect(passedOverAt(at('__proto__=&constructor='), declared)?.meant).toBeUndefined();
});
