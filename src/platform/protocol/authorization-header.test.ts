import { expect, test } from 'vitest';
import { authorizationToken } from './token-parameter.ts';

const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`;

test.each([
  ['Bearer hub_abc', false],
  ['bearer   hub_abc ', false],
  ['token hub_abc', false],
  [basic('alice:hub_abc'), true],
  [basic(':hub_abc'), true],
  [basic('jürgen:hub_abc').replace('Basic', 'basic'), true],
])('reads the token of %j', (header, isBasic) => {
  expect(authorizationToken(header)).toEqual({ token: 'hub_abc', isBasic });
});

test('takes all that follows the first colon for the password (RFC 7617 §2)', () => {
  expect(authorizationToken(basic('alice:a:b'))?.token).toBe('a:b');
});

test.each([
  undefined,
  '',
  'Bearer',
  'Bearer ',
  'Bearer a b',
  'tokens x',
  'Basic',
  'Basic !',
  basic('alice'),
  basic('alice:'),
])('finds no token in %j', (header) => {
  expect(authorizationToken(header)).toBeUndefined();
});
