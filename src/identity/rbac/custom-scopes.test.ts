import { expect, test } from 'vitest';
import { validateCustomScopes } from './custom-scopes.ts';

const scope = { description: 'Something.', subscopes: [] };

test.each(['custom:wiki:read', 'custom:wiki:*', 'custom:abc', 'custom:a-b_c', 'custom:0:x_'])(
  'accepts the name %s',
  (name) => {
    expect(validateCustomScopes({ [name]: scope })).toEqual([]);
  },
);

test.each([
  'wiki:read',
  'custom:',
  'custom:ab',
  'custom:Wiki',
  'custom:wiki:',
  'custom:_wiki',
  'custom:wiki!x',
  'read:users',
  'custom:wiki-',
  'custom:wiki\n',
])('refuses the name %j', (name) => {
  expect(validateCustomScopes({ [name]: scope })).toEqual([
    { path: `Hub.custom_scopes.${name}`, message: expect.stringContaining('custom:') },
  ]);
});

test('accepts sub-scopes that are defined beside it', () => {
  expect(
    validateCustomScopes({
      'custom:wiki:write': { description: 'Write.', subscopes: ['custom:wiki:read'] },
      'custom:wiki:read': scope,
    }),
  ).toEqual([]);
});

test('lists every problem at once', () => {
  const problems = validateCustomScopes({
    'custom:wiki:write': {
      description: ' ',
      subscopes: ['read:users', 'custom:wiki:read', 'custom:wiki:write', 'custom:wiki:toString'],
    },
    wiki: scope,
  });
  expect(problems.map(({ path }) => path)).toEqual([
    'Hub.custom_scopes.custom:wiki:write.description',
    'Hub.custom_scopes.custom:wiki:write.subscopes[0]',
    'Hub.custom_scopes.custom:wiki:write.subscopes[1]',
    'Hub.custom_scopes.custom:wiki:write.subscopes[2]',
    'Hub.custom_scopes.custom:wiki:write.subscopes[3]',
    'Hub.custom_scopes.wiki',
  ]);
});
