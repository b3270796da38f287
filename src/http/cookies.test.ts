import { describe, expect, test } from 'vitest';
import { cookieValues, serializeCookie, tokenCookieName } from './cookies.ts';

describe('the name of a token cookie', () => {
  test.each([
    ['service-whoami', 'service-whoami'],
    ['hub-user-a%40b', 'hub-user-a%40b'],
    ['service-(x)', 'service-%28x%29'],
    ['hub-user-a@b;c=d é', 'hub-user-a%40b%3Bc%3Dd%20%C3%A9'],
  ])('of the client %s is %s', (clientId, name) => {
    expect(tokenCookieName(clientId)).toBe(name);
    expect(tokenCookieName(name)).toBe(name);
  });
});

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
