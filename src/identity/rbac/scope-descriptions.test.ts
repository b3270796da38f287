import { describe, expect, test } from 'vitest';
import { createScopeCatalogue, scopeDefinitions } from './scope-definitions.ts';
import { describeScopes, type ScopeDescription } from './scope-descriptions.ts';

const catalogue = createScopeCatalogue();
const inWords = ({ scope, description, restriction }: ScopeDescription) => [
  scope,
  String(description),
  restriction && String(restriction),
];
const scopesOf = (scopes: string[]) => describeScopes(scopes, catalogue).map(({ scope }) => scope);

test.each([
  ['read:hub', undefined],
  ['tokens!user', 'only their own account'],
  ['tokens!user=alice', 'only user alice'],
  ['tokens!group=staff', 'only group staff'],
  ['access:services!service', 'only this service'],
  ['access:servers!server', 'only this server'],
  ['servers!server=alice/gpu', 'only the server gpu of alice'],
  ['servers!server=alice/', 'only the default server of alice'],
])('tells what %s is restricted to', (scope, restriction) => {
  const name = scope.split('!')[0] as keyof typeof scopeDefinitions;
  const { description } = scopeDefinitions[name];
  const [first] = describeScopes([scope], catalogue);
  expect(inWords(first!)).toEqual([scope, String(description), restriction]);
});

describe('to a reader', () => {
  const titleOfService = (name: string) => (name === 'whoami' ? 'Who am I' : undefined);
  const words = (scope: string) => {
    const [first] = describeScopes([scope], catalogue, { userName: 'alice', titleOfService });
    const [, ...words] = inWords(first!);
    return [...words, first!.group];
  };

  test.each([
    ['read:users:name!user', 'Know your user name', undefined, 'account'],
    ['read:users:groups!user=alice', 'Know your groups', undefined, 'account'],
    [
      'servers!server=alice/',
      String(scopeDefinitions.servers.own),
      'only your default server',
      'servers',
    ],
    [
      'servers!server=alice/gpu',
      String(scopeDefinitions.servers.own),
      'only your server gpu',
      'servers',
    ],
    ['access:services!service=whoami', 'Open Who am I as you', undefined, 'services'],
    ['access:services!service=wiki', 'Open wiki as you', undefined, 'services'],
    ['access:servers!server=bob/', 'Open the default server of bob', undefined, 'sharing'],
    ['inherit', 'Do everything you may do', undefined, 'account'],
  ])('calls what is theirs theirs: %s', (scope, ...expected) => {
    expect(words(scope)).toEqual(expected);
  });

  test.each([
    ['servers', undefined],
    ['servers!user=bob', 'only user bob'],
    ['servers!group=staff', 'only group staff'],
  ])('puts what reaches others among people: %s', (scope, restriction) => {
    expect(words(scope)).toEqual([
      String(scopeDefinitions.servers.description),
      restriction,
      'people',
    ]);
  });
});

test('leaves out what another scope of the list brings along', () => {
  expect(scopesOf(['servers', 'read:servers', 'read:servers!user=a', 'read:hub'])).toEqual([
    'servers',
    'read:hub',
  ]);
  expect(scopesOf(['servers!user=a', 'read:servers!user=a'])).toEqual(['servers!user=a']);
});

test('keeps what is brought along under another restriction only', () => {
  const scopes = ['servers!user=a', 'read:servers!user=b', 'read:servers!group=a', 'read:servers'];
  expect(scopesOf(scopes)).toEqual(scopes);
});

test('leaves out repetitions and what it does not know', () => {
  expect(scopesOf(['read:hub', 'read:hub', 'nonsense', 'servers!tenant=x'])).toEqual(['read:hub']);
});
