import { expect, test } from 'vitest';
import { bearerChallenge, readPresentedToken } from './presented-token.ts';

const read = (authorization: string | undefined, query = '') =>
  readPresentedToken({ authorization, query: new URLSearchParams(query) });

test.each([
  ['Bearer hub_abc', ''],
  ['bearer   hub_abc ', ''],
  ['token hub_abc', ''],
  [undefined, 'token=hub_abc'],
  ['Basic eDp5', 'token=hub_abc'],
])('reads the token of %j with ?%s', (authorization, query) => {
  expect(read(authorization, query)).toBe('hub_abc');
});

test.each([
  undefined,
  '',
  'Bearer',
  'Bearer ',
  'Bearer a b',
  'Basic eDp5',
  'tokens x',
  'Bearer a"b',
])('finds no token in %j', (authorization) => {
  expect(read(authorization, 'token=')).toBeUndefined();
});

test('refuses more than one token', () => {
  const refusal = expect.objectContaining({ error: 'invalid_request' });
  expect(() => read('Bearer a', 'token=a')).toThrow(refusal);
  expect(() => read(undefined, 'token=a&token=b')).toThrow(refusal);
});

test('writes challenges', () => {
  expect(bearerChallenge()).toBe('Bearer realm="hub"');
  expect(bearerChallenge('insufficient_scope', 'read:users')).toBe(
    'Bearer realm="hub", error="insufficient_scope", scope="read:users"',
  );
});
