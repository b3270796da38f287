import { describe, expect, test } from 'vitest';
import { loggedTarget } from './request-log.ts';

describe('a logged request target', () => {
  test.each([
    ['/hub/home', '/hub/home'],
    ['/hub/api/users?offset=10&limit=5', '/hub/api/users?offset=10&limit=5'],
    ['/hub/login?next=%2Fhub%2Fhome%3Fa%3D1', '/hub/login?next=%2Fhub%2Fhome%3Fa%3D1'],
    ['/a?flag&b=', '/a?flag&b='],
  ])('%s is shown as it is', (target, expected) => {
    expect(loggedTarget(target)).toBe(expected);
  });

  test.each([
    ['/hub/api/user?token=S3CR3T', '/hub/api/user?token=[secret]'],
    ['/a?x=1&API_Token=S3CR3T&y=2', '/a?x=1&API_Token=[secret]&y=2'],
    ['/a?%74oken=S3CR3T', '/a?token=[secret]'],
    ['/a?%2574oken=S3CR3T', '/a?token=[secret]'],
    ['/cb?code=S3CR3T&state=S3CR3T', '/cb?code=[secret]&state=[secret]'],
    ['/hub/login?next=%2Fhub%2Fhome%3Ftoken%3DS3CR3T', '/hub/login?next=/hub/home?[secret]'],
    ['/hub/login?next=%2Fa%3F%2574oken%3DS3CR3T', '/hub/login?next=/a?[secret]'],
    ['/a?b=token%3DS3CR3T', '/a?b=[secret]'],
    ['/a?b=%25252525252574oken%3DS3CR3T', '/a?[unreadable]'],
    ['/a?token%zz=S3CR3T', '/a?[unreadable]'],
    ['/a?b?token=S3CR3T', '/a?b%3Ftoken=[secret]'],
  ])('%s shows no secret', (target, expected) => {
    expect(loggedTarget(target)).toBe(expected);
  });

  test('is bounded', () => {
    expect(loggedTarget(`/${'a'.repeat(10_000)}`).length).toBe(2048);
    expect(loggedTarget(`/?token=${'a'.repeat(10_000)}`)).toBe('/?token=[secret]');
  });
});
