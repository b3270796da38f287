import { describe, expect, test } from 'vitest';
import { hasGroupScopes, holdsAny, isAllowed, withScopesForOwner } from './access-rule.ts';
import type { UserModel } from './hub-api.ts';

const rule = {
  oauthScopes: ['access:services!service=whoami'],
  hubScopes: undefined,
  hubUsers: undefined,
  hubGroups: undefined,
};

function user(scopes: readonly string[], rest: Partial<UserModel> = {}): UserModel {
  return { name: 'alice', scopes, ...rest };
}

describe('scopes', () => {
  test.for([
    ['access:services!service=x', 'access:services!service=x', true],
    ['access:services', 'access:services!service=x', true],
    ['access:services!service=y', 'access:services!service=x', false],
    ['access:services!service=x', 'access:services', false],
    ['access:servers', 'access:servers!server=alice/', true],
    ['access:servers!user=alice', 'access:servers!server=alice/lab', true],
    ['access:servers!user=al', 'access:servers!server=alice/lab', false],
    ['access:users:servers!server=alice/', 'access:servers!server=alice/', true],
    ['access:servers!server=alice/', 'access:users:servers!server=alice/', true],
    ['access:servers!server=alice', 'access:servers!server=alice/', true],
    ['access:servers!server=alice/lab', 'access:servers!server=alice/', false],
    ['access:servers!group=staff', 'access:servers!server=alice/', false],
    ['access:servers!user', 'access:servers!server=alice/', false],
    ['access:servers!server', 'access:servers!server=/', false],
    ['access', 'access:services!service=x', false],
    ['custom:board:write', 'custom:board:write', true],
    ['custom:board:read', 'custom:board:write', false],
  ] as const)('%s covers %s: %s', ([held, required, covers]) => {
    expect(holdsAny(user([held]), [required])).toBe(covers);
  });

  test('one of several is enough, none of none is not', () => {
    expect(holdsAny(user(['b']), ['a', 'b'])).toBe(true);
    expect(holdsAny(user(['a', 'b']), [])).toBe(false);
    expect(holdsAny({ name: 'alice' }, ['a'])).toBe(false);
  });
});

describe('scopes for groups', () => {
  const owner = { name: 'bob', groups: ['staff'] };
  const required = ['access:servers!server=bob/'];

  test.for([
    ['access:servers!group=staff', owner, true],
    ['access:users:servers!group=staff', owner, true],
    ['access:servers!group=others', owner, false],
    ['read:servers!group=staff', owner, false],
    ['access:servers!group=staff', { name: 'carl', groups: ['staff'] }, false],
    ['access:servers!group=staff', { name: 'bob', groups: [] }, false],
    ['access:servers!group=staff', { name: 'bob' }, false],
    ['access:servers!group=staff', { ...owner, kind: 'service' }, false],
  ] as const)('%s opens the server of %j: %s', ([held, servedFor, isOpen]) => {
    expect(hasGroupScopes(user([held]))).toBe(true);
    expect(holdsAny(withScopesForOwner(user([held]), servedFor), required)).toBe(isOpen);
  });
});

describe('Access control', () => {
  test('hub_scopes decide in place of the scopes of the service', () => {
    const withScopes = { ...rule, hubScopes: ['custom:x:y'] };
    expect(isAllowed(user(['access:services']), withScopes)).toBe(false);
    expect(isAllowed(user(['custom:x:y']), withScopes)).toBe(true);
  });

  test('users and groups grant access where hub_scopes is not defined', () => {
    const withNames = { ...rule, hubUsers: new Set(['alice']), hubGroups: new Set(['staff']) };
    expect(isAllowed(user([]), withNames)).toBe(true);
    expect(isAllowed(user([], { name: 'bob', groups: ['staff'] }), withNames)).toBe(true);
    expect(isAllowed(user(['access:services'], { name: 'eve', groups: [] }), withNames)).toBe(
      false,
    );
  });

  test('users and groups are ignored where hub_scopes is defined', () => {
    const both = { ...rule, hubScopes: ['custom:x:y'], hubUsers: new Set(['alice']) };
    expect(isAllowed(user([]), both)).toBe(false);
  });

  test('a service that bears the name of a user is not that user', () => {
    const withNames = { ...rule, hubUsers: new Set(['alice']) };
    expect(isAllowed(user([], { kind: 'service' }), withNames)).toBe(false);
  });
});
