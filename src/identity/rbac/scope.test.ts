import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { HubError } from '../../platform/errors.ts';
import {
  formatScope,
  parseScope,
  presentScopes,
  quoteScope,
  readScope,
  splitServerValue,
} from './scope.ts';

describe('parseScope', () => {
  test.each([
    ['read:users', { name: 'read:users' }],
    ['(no_scope)', { name: '(no_scope)' }],
    ['servers!user=alice', { name: 'servers', filter: { kind: 'user', value: 'alice' } }],
    ['servers!group=staff', { name: 'servers', filter: { kind: 'group', value: 'staff' } }],
    ['servers!server=alice/', { name: 'servers', filter: { kind: 'server', value: 'alice/' } }],
    ['servers!server=a/gpu', { name: 'servers', filter: { kind: 'server', value: 'a/gpu' } }],
    [
      'access:services!service=w',
      { name: 'access:services', filter: { kind: 'service', value: 'w' } },
    ],
    ['servers!user', { name: 'servers', filter: { kind: 'user' } }],
    ['servers!server', { name: 'servers', filter: { kind: 'server' } }],
    ['read:services!service', { name: 'read:services', filter: { kind: 'service' } }],
    ['users!user=a@b=c!d', { name: 'users', filter: { kind: 'user', value: 'a@b=c!d' } }],
    ['users!user=a!group=g', { name: 'users', filter: { kind: 'user', value: 'a!group=g' } }],
    ['users!user=a b/c', { name: 'users', filter: { kind: 'user', value: 'a b/c' } }],
  ])('reads %s', (text, scope) => {
    expect(parseScope(text)).toEqual(scope);
    expect(formatScope(parseScope(text))).toBe(text);
  });

  test.each([
    ['servers!tenant=x', /unknown filter/],
    ['servers!', /unknown filter/],
    ['servers!=x', /unknown filter/],
    ['servers!User=x', /unknown filter/],
    ['servers!user=', /empty filter/],
    ['servers!group', /does not name its group/],
    ['servers!server=alice', /user\/server/],
    ['servers!server=/gpu', /user\/server/],
    ['', /no name/],
    ['!user=alice', /no name/],
  ])('refuses %j', (text, message) => {
    expect(() => parseScope(text)).toThrow(
      expect.objectContaining({ code: 'bad_request', message: expect.stringMatching(message) }),
    );
    expect(String(readScope(text).problem)).toMatch(message);
  });

  test('refuses with an error of the domain', () => {
    expect(() => parseScope('servers!tenant=x')).toThrow(HubError);
  });

  test('reads access:users:servers as access:servers', () => {
    expect(parseScope('access:users:servers')).toEqual({ name: 'access:servers' });
    expect(formatScope(parseScope('access:users:servers!server=u/'))).toBe(
      'access:servers!server=u/',
    );
  });

  test('reads back any scope it wrote', () => {
    const filter = fc.oneof(
      fc.record({
        kind: fc.constantFrom('user' as const, 'group' as const, 'service' as const),
        value: fc.string({ minLength: 1, unit: 'grapheme' }),
      }),
      fc
        .tuple(fc.string({ minLength: 1 }), fc.string())
        .filter(([user, server]) => !user.includes('/') && !server.includes('/'))
        .map(([user, server]) => ({ kind: 'server' as const, value: `${user}/${server}` })),
    );
    fc.assert(
      fc.property(fc.constantFrom('read:users', 'custom:a:b'), filter, (name, filter) => {
        expect(parseScope(formatScope({ name, filter }))).toEqual({ name, filter });
      }),
      runs(100),
    );
  });
});

test('splitServerValue separates at the last slash', () => {
  expect(splitServerValue('alice/')).toEqual({ userName: 'alice', serverName: '' });
  expect(splitServerValue('alice/gpu')).toEqual({ userName: 'alice', serverName: 'gpu' });
});

describe('presentScopes', () => {
  test('lists access to servers in both spellings, sorted', () => {
    expect(
      presentScopes(new Set(['read:users', 'access:servers!server=u/', 'access:services'])),
    ).toEqual([
      'access:servers!server=u/',
      'access:services',
      'access:users:servers!server=u/',
      'read:users',
    ]);
  });

  test('lists unfiltered access to servers in both spellings', () => {
    expect(presentScopes(['access:servers'])).toEqual(['access:servers', 'access:users:servers']);
  });
});

test('quoteScope bounds what it quotes', () => {
  expect(quoteScope('x'.repeat(5000)).length).toBeLessThan(120);
  expect(quoteScope('a\nb')).toBe('"a\\nb"');
});
