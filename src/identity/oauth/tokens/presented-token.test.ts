import { expect, test } from 'vitest';
import { bearerChallenge, readPresentedToken } from './token-verifier.ts';

const read = (headerToken: string | undefined, query: string) =>
  readPresentedToken({ headerToken, query: new URLSearchParams(query) });

test('reads the token of the header or of the address', () => {
  expect(read('hub_abc', 'token=')).toBe('hub_abc');
  expect(read(undefined, 'token=hub_abc')).toBe('hub_abc');
  expect(read(undefined, 'token=')).toBeUndefined();
});

test('refuses more than one token', () => {
  const refusal = expect.objectContaining({ error: 'invalid_request' });
  expect(() => read('a', 'token=a')).toThrow(refusal);
  expect(() => read(undefined, 'token=a&token=b')).toThrow(refusal);
});

test('writes challenges', () => {
  expect(bearerChallenge()).toBe('Bearer realm="hub"');
  expect(bearerChallenge('insufficient_scope', 'read:users')).toBe(
    'Bearer realm="hub", error="insufficient_scope", scope="read:users"',
  );
});
