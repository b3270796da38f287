import { expect, test } from 'vitest';
import { createScopeCatalogue, scopeDefinitions } from './scope-definitions.ts';
import { describeScopes } from './scope-descriptions.ts';

const catalogue = createScopeCatalogue();
const scopesOf = (scopes: string[]) => describeScopes(scopes, catalogue).map(({ scope }) => scope);

test.each([
  ['read:hub', undefined],
  ['tokens!user', 'only your own account'],
  ['tokens!user=alice', 'only user alice'],
  ['tokens!group=staff', 'only group staff'],
  ['access:services!service', 'only this service'],
  ['access:services!service=wiki', 'only service wiki'],
  ['access:servers!server', 'only this server'],
  ['access:servers!server=alice/gpu', 'only server alice/gpu'],
])('tells what %s is restricted to', (scope, restriction) => {
  const name = scope.split('!')[0] as keyof typeof scopeDefinitions;
  expect(describeScopes([scope], catalogue)).toEqual([
    { scope, description: scopeDefinitions[name].description, restriction },
  ]);
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
