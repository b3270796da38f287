import { expect, test } from 'vitest';
import { cookieValues, serializeCookie } from './cookies.ts';

test('every value of a cookie is found, quoted or not, and none of a longer name', () => {
  expect(cookieValues('a=1; ab=2; a="3";a=4', 'a')).toEqual(['1', '3', '4']);
  expect(cookieValues(undefined, 'a')).toEqual([]);
});

test('a cookie is written with its flags, and removed with a date in the past', () => {
  expect(serializeCookie('a', 'b', { path: '/x/', secure: true })).toBe(
    'a=b; Path=/x/; HttpOnly; Secure; SameSite=Lax',
  );
  expect(serializeCookie('a', '', { path: '/', secure: false, maxAgeSeconds: 0 })).toContain(
    'Max-Age=0; Expires=Thu, 01 Jan 1970',
  );
  expect(() => serializeCookie('a', 'b;c', { path: '/', secure: false })).toThrow(TypeError);
});
