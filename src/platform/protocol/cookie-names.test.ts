import { describe, expect, test } from 'vitest';
import { tokenCookieName } from './cookie-names.ts';

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
