import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { expandScopes, resolveScopes } from './scope.ts';
import { createScopeCatalogue } from './scope-definitions.ts';

const catalogue = createScopeCatalogue({
  'custom:wiki:write': { description: 'Write.', subscopes: ['custom:wiki:read'] },
  'custom:wiki:read': { description: 'Read.', subscopes: [] },
});
const alice = { kind: 'user', name: 'alice' } as const;
const culler = { kind: 'service', name: 'culler' } as const;

const sorted = (scopes: Iterable<string>) => [...scopes].sort();

describe('expandScopes', () => {
  test('adds sub-scopes with the filter kept', () => {
    expect(sorted(expandScopes(['servers!user=bob'], { catalogue }))).toEqual([
      'delete:servers!user=bob',
      'read:servers!user=bob',
      'read:users:name!user=bob',
      'servers!user=bob',
      'start:servers!user=bob',
    ]);
    expect(sorted(expandScopes(['custom:wiki:write!group=g'], { catalogue }))).toEqual([
      'custom:wiki:read!group=g',
      'custom:wiki:write!group=g',
    ]);
  });

  test('drops what a server filter cannot restrict, rather than dropping the filter', () => {
    expect(sorted(expandScopes(['servers!server=bob/gpu'], { catalogue }))).toEqual([
      'delete:servers!server=bob/gpu',
      'read:servers!server=bob/gpu',
      'servers!server=bob/gpu',
      'start:servers!server=bob/gpu',
    ]);
    expect(expandScopes(['read:users!server=bob/'], { catalogue }).size).toBe(0);
  });

  test('reads both spellings of access to servers', () => {
    expect(sorted(expandScopes(['access:users:servers!user=b'], { catalogue }))).toEqual([
      'access:servers!user=b',
    ]);
  });

  test('(no_scope) allows nothing', () => {
    expect(resolveScopes(['(no_scope)'], { catalogue, owner: alice })).toEqual({
      scopes: new Set(),
      unresolved: [],
    });
  });
});

describe('self', () => {
  test("is everything of the user's own", () => {
    expect(sorted(expandScopes(['self'], { catalogue, owner: alice }))).toEqual(
      [
        'access:servers',
        'delete:servers',
        'read:servers',
        'read:shares',
        'read:tokens',
        'read:users',
        'read:users:activity',
        'read:users:groups',
        'read:users:info',
        'read:users:name',
        'read:users:shares',
        'servers',
        'start:servers',
        'tokens',
        'users:activity',
        'users:shares',
      ].map((name) => `${name}!user=alice`),
    );
  });

  test('is nothing for a service', () => {
    expect(resolveScopes(['self'], { catalogue, owner: culler })).toEqual({
      scopes: new Set(),
      unresolved: [],
    });
  });

  test('cannot be resolved without an owner', () => {
    expect(resolveScopes(['self'], { catalogue })).toEqual({
      scopes: new Set(),
      unresolved: ['self'],
    });
  });
});

describe('inherit', () => {
  test('is what the owner holds', () => {
    const inherited = new Set(['read:hub', 'tokens!user=alice']);
    expect(expandScopes(['inherit'], { catalogue, inherited })).toEqual(inherited);
  });

  test('cannot be resolved where nothing is inherited', () => {
    expect(resolveScopes(['inherit'], { catalogue, owner: alice }).unresolved).toEqual(['inherit']);
  });
});

describe('self references', () => {
  const server = { clientId: 'hub-user-alice', server: { userName: 'alice', serverName: '' } };
  const service = { clientId: 'service-wiki', service: 'wiki' };

  test.each([
    ['users:activity!user', { owner: alice }, 'users:activity!user=alice'],
    ['access:servers!server', { client: server }, 'access:servers!server=alice/'],
    ['access:services!service', { client: service }, 'access:services!service=wiki'],
    ['access:services!service', { owner: culler }, 'access:services!service=culler'],
    ['access:services!service', { owner: culler, client: service }, 'access:services!service=wiki'],
    ['access:services!service', { owner: alice, client: service }, 'access:services!service=wiki'],
  ])('%s of %o is %s', (scope, holder, expected) => {
    expect(expandScopes([scope], { catalogue, ...holder })).toContain(expected);
  });

  test.each([
    ['users:activity!user', { owner: culler }],
    ['users:activity!user', {}],
    ['access:servers!server', { owner: alice }],
    ['access:servers!server', { owner: alice, client: service }],
    ['access:services!service', { owner: alice }],
    ['access:services!service', { owner: alice, client: server }],
    ['groups!group', { owner: alice }],
  ])('%s of %o means nothing', (scope, holder) => {
    expect(resolveScopes([scope], { catalogue, ...holder })).toEqual({
      scopes: new Set(),
      unresolved: [scope],
    });
  });
});

test.each([
  'nonsense',
  'nonsense!user=a',
  'servers!tenant=x',
  'self!user=bob',
  'inherit!user=bob',
  '',
  'custom:gone:x',
])('drops and reports %j, keeping the rest', (scope) => {
  const { scopes, unresolved } = resolveScopes([scope, 'read:hub'], {
    catalogue,
    owner: alice,
    inherited: new Set(['shutdown']),
  });
  expect(scopes).toEqual(new Set(['read:hub']));
  expect(unresolved).toEqual([scope]);
});

describe('for any scopes', () => {
  const scope = fc
    .tuple(
      fc.constantFrom(...catalogue.names),
      fc.constantFrom('', '!user=a', '!group=g', '!server=a/', '!service=s', '!user', '!server'),
    )
    .map(([name, filter]) => name + filter);
  const scopes = fc.array(scope, { maxLength: 6 });
  const context = { catalogue, owner: alice, inherited: new Set(['read:hub']) };

  test('expansion is monotone: more scopes never allow less', () => {
    fc.assert(
      fc.property(scopes, scopes, (some, others) => {
        const less = expandScopes(some, context);
        expect(less.isSubsetOf(expandScopes([...some, ...others], context))).toBe(true);
      }),
      runs(100),
    );
  });

  test('expansion is a union: scopes do not act on one another', () => {
    fc.assert(
      fc.property(scopes, scopes, (some, others) => {
        const union = expandScopes(some, context).union(expandScopes(others, context));
        expect(expandScopes([...some, ...others], context)).toEqual(union);
      }),
      runs(100),
    );
  });

  test('expanding twice changes nothing', () => {
    fc.assert(
      fc.property(scopes, (some) => {
        const once = expandScopes(some, context);
        expect(resolveScopes(once, context)).toEqual({ scopes: once, unresolved: [] });
      }),
      runs(100),
    );
  });

  test('expansion never loses or widens a filter', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...catalogue.names),
        fc.constantFrom('!user=a', '!server=a/'),
        (name, filter) => {
          for (const member of expandScopes([name + filter], context))
            expect(member.endsWith(filter)).toBe(true);
        },
      ),
      runs(100),
    );
  });
});
