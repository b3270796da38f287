import { describe, expect, test } from 'vitest';
import { checkAccess, excessScopes, listFilter, mayGrant, type Resource } from './access-check.ts';
import { createMembership, emptyMembership } from './membership.ts';

const membership = createMembership(new Map([['staff', new Set(['alice'])]]));
const user = (name: string): Resource => ({ kind: 'user', name });
const group = (name: string): Resource => ({ kind: 'group', name });
const service = (name: string): Resource => ({ kind: 'service', name });
const server = (userName: string, serverName: string): Resource => ({
  kind: 'server',
  userName,
  serverName,
});

describe('checkAccess', () => {
  test.each<[string, Resource | undefined, string]>([
    ['x', undefined, 'granted'],
    ['x', user('alice'), 'granted'],
    ['x', server('alice', ''), 'granted'],
    ['x', group('staff'), 'granted'],
    ['x', service('wiki'), 'granted'],

    ['x!user=alice', undefined, 'filtered'],
    ['x!user=alice', user('alice'), 'granted'],
    ['x!user=alice', user('bob'), 'filtered'],
    ['x!user=alice', server('alice', ''), 'granted'],
    ['x!user=alice', server('alice', 'gpu'), 'granted'],
    ['x!user=alice', server('bob', ''), 'filtered'],
    ['x!user=alice', group('alice'), 'filtered'],
    ['x!user=alice', service('alice'), 'filtered'],

    ['x!group=staff', undefined, 'filtered'],
    ['x!group=staff', user('alice'), 'granted'],
    ['x!group=staff', user('bob'), 'filtered'],
    ['x!group=staff', user('staff'), 'filtered'],
    ['x!group=staff', server('alice', 'gpu'), 'granted'],
    ['x!group=staff', server('bob', 'gpu'), 'filtered'],
    ['x!group=staff', group('staff'), 'granted'],
    ['x!group=staff', group('ops'), 'filtered'],
    ['x!group=staff', service('staff'), 'filtered'],

    ['x!server=alice/', undefined, 'filtered'],
    ['x!server=alice/', server('alice', ''), 'granted'],
    ['x!server=alice/', server('alice', 'gpu'), 'filtered'],
    ['x!server=alice/gpu', server('alice', 'gpu'), 'granted'],
    ['x!server=alice/', user('alice'), 'filtered'],
    ['x!server=alice/', user('alice/'), 'filtered'],

    ['x!service=wiki', undefined, 'filtered'],
    ['x!service=wiki', service('wiki'), 'granted'],
    ['x!service=wiki', service('wiki2'), 'filtered'],
    ['x!service=wiki', user('wiki'), 'filtered'],

    ['xy', undefined, 'missing'],
    ['xy!user=alice', user('alice'), 'missing'],
    ['y', user('alice'), 'missing'],
  ])('holding %s, x on %o is %s', (grantedScopes, resource, outcome) => {
    expect(checkAccess(new Set([grantedScopes]), 'x', resource, membership)).toBe(outcome);
  });

  test('GHSA-69wv: a filtered scope does not satisfy an unfiltered requirement', () => {
    const grantedScopes = new Set(['admin:users!group=staff', 'admin:users!user=alice']);
    expect(checkAccess(grantedScopes, 'admin:users', undefined, membership)).toBe('filtered');
  });

  test.each([
    ['x!service=wiki', 'granted'],
    ['x!service=blog', 'filtered'],
    ['x!user=alice', 'granted'],
    ['x!group=staff', 'granted'],
    ['x!server=alice/gpu', 'granted'],
    ['x!server=bob/', 'filtered'],
    ['x!user', 'filtered'],
    ['y!service=wiki', 'missing'],
  ])('takes the filter of the requirement %s for the resource', (required, outcome) => {
    const grantedScopes = new Set(['x!service=wiki', 'x!group=staff']);
    expect(checkAccess(grantedScopes, required, undefined, membership)).toBe(outcome);
  });

  test('takes both spellings of access to servers', () => {
    const grantedScopes = new Set(['access:servers!user=alice']);
    for (const name of ['access:servers', 'access:users:servers']) {
      expect(checkAccess(grantedScopes, name, server('alice', ''), emptyMembership)).toBe(
        'granted',
      );
      expect(checkAccess(grantedScopes, `${name}!server=alice/`, undefined, emptyMembership)).toBe(
        'granted',
      );
      expect(checkAccess(grantedScopes, name, server('bob', ''), emptyMembership)).toBe('filtered');
    }
  });

  test('a user name that looks like a filter reaches no other user', () => {
    const grantedScopes = new Set([
      'x!user=mallory!user=alice',
      'x!user=mallory/',
      'x!user=y!group=staff',
    ]);
    expect(checkAccess(grantedScopes, 'x', user('alice'), membership)).toBe('filtered');
    expect(checkAccess(grantedScopes, 'x', server('mallory', ''), membership)).toBe('filtered');
    expect(checkAccess(grantedScopes, 'x', group('staff'), membership)).toBe('filtered');
  });
});

describe('mayGrant', () => {
  const granter = new Set([
    'users',
    'tokens!user=alice',
    'servers!group=staff',
    'read:groups!group=staff',
  ]);

  test.each([
    ['users'],
    ['users!user=bob'],
    ['users!group=ops'],
    ['tokens!user=alice'],
    ['tokens!server=alice/gpu'],
    ['servers!user=alice'],
    ['servers!server=alice/'],
    ['servers!group=staff'],
  ])('allows to hand on %s', (wanted) => {
    expect(mayGrant(granter, new Set([wanted]), membership)).toBe(true);
  });

  test.each([
    ['admin:users'],
    ['tokens'],
    ['tokens!user=bob'],
    ['tokens!group=staff'],
    ['servers!user=bob'],
    ['servers!group=ops'],
    ['read:groups'],
  ])('refuses to hand on %s, which reaches further', (wanted) => {
    expect(mayGrant(granter, new Set([wanted]), membership)).toBe(false);
    expect(excessScopes(granter, new Set(['users', wanted]), membership)).toEqual([wanted]);
  });

  test('allows to hand on nothing', () => {
    expect(mayGrant(new Set(), new Set(), membership)).toBe(true);
  });
});

describe('listFilter', () => {
  test('shows all rows for an unfiltered scope', () => {
    expect(listFilter(new Set(['list:users', 'list:users!user=a']), 'list:users')).toBe('all');
  });

  test('collects the filters held, whatever their kind', () => {
    const grantedScopes = new Set([
      'list:users!user=a',
      'list:users!user=b',
      'list:users!group=g',
      'list:users!server=c/x',
      'list:users!service=s',
      'list:groups!group=other',
      'read:hub',
    ]);
    expect(listFilter(grantedScopes, 'list:users')).toEqual({
      users: new Set(['a', 'b']),
      groups: new Set(['g']),
      servers: new Set(['c/x']),
      services: new Set(['s']),
    });
  });

  test('gives no right to list without the scope', () => {
    expect(listFilter(new Set(['read:users']), 'list:users')).toBeUndefined();
    expect(listFilter(new Set(['list:users!user']), 'list:users')).toBeUndefined();
  });
});
