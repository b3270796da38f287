import { expect, test } from 'vitest';
import { z } from 'zod';
import { readQuery } from './declared-query.ts';

const operation = { query: z.object({ search: z.string(), show: z.string() }) };
const at = (querystring: string) => ({
  path: '/hub/list',
  querystring,
  query: Object.fromEntries(new URLSearchParams(querystring)),
});

test('what the operation and the page declare is read, and nothing else', () => {
  const asked = at('search=a&nmae=b&name=c&name=d');
  const { search, passedOver } = readQuery(asked, operation, { query: ['name'] });
  expect(String(search)).toBe('search=a&name=c&name=d');
  expect(passedOver).toEqual({
    names: ['nmae'],
    meant: { names: ['name'], url: '/hub/list?search=a&name=c&name=d' },
  });
});

test('a page whose parameters others name takes each', () => {
  const taken = (querystring: string) => readQuery(at(querystring), operation, { query: 'any' });
  expect(String(taken('anything=a').search)).toBe('anything=a');
  expect(taken('serach=a').passedOver).toBeUndefined();
});

test('no more than three names are shown, and none that is no word', () => {
  const passedOver = (querystring: string) => readQuery(at(querystring), operation).passedOver;
  expect(passedOver('a=&b=&c=&d=&e=')?.names).toEqual(['a', 'b', 'c', '…']);
  expect(passedOver(`call%20555=&${'x'.repeat(40)}=`)?.names).toEqual(['…']);
  expect(passedOver('__proto__=&constructor=')?.meant).toBeUndefined();
});

test('values that are taken as not said are named, with the closest that there is', () => {
  const listing = {
    query: z.object({
      show: z.enum(['active', 'inactive']).optional().catch(undefined),
      sort: z.enum(['name', '-name']).default('name').catch('name').optional(),
      size: z.coerce
        .number()
        .pipe(z.literal([10, 25]))
        .catch(25),
    }),
  };
  const passedOver = (querystring: string) => readQuery(at(querystring), listing).passedOver;
  expect(passedOver('show=active&sort=-name&size=10')).toBeUndefined();
  expect(passedOver('show=&sort=&size=')).toBeUndefined();
  expect(passedOver('show=aktive&sort=name')).toEqual({
    names: ['show=aktive'],
    meant: { names: ['show=active'], url: '/hub/list?show=active&sort=name' },
  });
  expect(passedOver('size=11&sort=%3Cb%3E')).toEqual({
    names: ['sort=…', 'size=11'],
    meant: undefined,
  });
  expect(passedOver('shwo=inactive&size=ten')).toEqual({
    names: ['shwo', 'size=ten'],
    meant: { names: ['show'], url: '/hub/list?show=inactive' },
  });
});
