import { expect, test } from 'vitest';
import { defaultRoles } from './role.ts';
import { expandScopes } from './scope.ts';
import { type ScopeChoice, scopeChoices } from './scope-choices.ts';
import { createScopeCatalogue } from './scope-definitions.ts';

const catalogue = createScopeCatalogue({
  'custom:a:x': { description: 'X.', subscopes: ['custom:a:y'] },
  'custom:a:y': { description: 'Y.', subscopes: ['custom:a:x'] },
});

function choicesOf(scopes: readonly string[], serviceNames: readonly string[] = []) {
  const grantedScopes = expandScopes(scopes, { catalogue, owner: { kind: 'user', name: 'ada' } });
  return scopeChoices(grantedScopes, { reader: { userName: 'ada' }, catalogue, serviceNames });
}

/** `group: scope (parts)` for each to tick. */
function outline(scopes: readonly string[], serviceNames?: readonly string[]): string[] {
  return choicesOf(scopes, serviceNames).groups.flatMap(({ group, choices }) =>
    choices.map(({ scope, parts }) =>
      [
        `${group}: ${scope}`,
        ...(parts.length > 0 ? [`(${parts.map(nameOf).join(' ')})`] : []),
      ].join(' '),
    ),
  );
}

const nameOf = ({ scope }: ScopeChoice) => scope;

test('a user chooses among what is theirs, by a filter that follows them', () => {
  expect(outline(['self'])).toEqual([
    'account: read:users!user (read:users:name!user read:users:groups!user read:users:activity!user)',
    'account: read:users:info!user',
    'account: users:activity!user',
    'account: tokens!user (read:tokens!user)',
    'servers: servers!user (read:servers!user start:servers!user delete:servers!user)',
    'servers: access:servers!user',
    'sharing: read:shares!user',
    'sharing: users:shares!user (read:users:shares!user)',
  ]);
  expect(choicesOf(['self']).reaches).toEqual([]);
});

test('services, and servers that others share, are chosen one by one', () => {
  const grantedScopes = [
    'access:services!service=wiki',
    'access:servers!server=bob/',
    'custom:a:x',
  ];
  expect(outline(grantedScopes, ['not', 'held'])).toEqual([
    'services: custom:a:x (custom:a:y)',
    'services: access:services!service=wiki',
    'sharing: access:servers!server=bob/',
  ]);
});

test('who may open all services chooses all, or some of those that there are', () => {
  expect(outline(['access:services'], ['wiki', 'forum'])).toEqual([
    'services: access:services',
    'services: access:services!service=forum',
    'services: access:services!service=wiki',
  ]);
});

test('what reaches others is chosen by name, and for those for whom it is held', () => {
  const { groups, reaches, reachKinds } = choicesOf([
    'self',
    'servers!group=staff',
    'read:users:name!user=bob',
  ]);
  const people = groups.find(({ group }) => group === 'people');
  expect(people?.choices.map(nameOf)).toEqual(['servers']);
  expect(people?.choices[0]?.parts.map(nameOf)).toContain('read:users:name');
  expect(reaches).toEqual(['!group=staff', '!user=bob']);
  expect(reachKinds.toSorted()).toEqual(['group', 'server', 'user']);
});

test('an administrator has everything once, their own apart', () => {
  const { groups, reaches } = choicesOf(['self', ...defaultRoles.admin.scopes]);
  expect(groups.map(({ group }) => group)).toEqual([
    'account',
    'servers',
    'services',
    'sharing',
    'people',
    'hub',
  ]);
  expect(reaches).toEqual(['']);
  const all = groups.flatMap(({ choices }) => choices.flatMap((each) => [each, ...each.parts]));
  expect(new Set(all.map(nameOf)).size).toBe(all.length);
  expect(all.map(nameOf)).toEqual(
    expect.arrayContaining(['shutdown', 'admin:users', 'servers!user']),
  );
  expect(all.find(({ scope }) => scope === 'admin:users')?.risk?.toString()).toContain(
    'administrator',
  );
  expect(all.find(({ scope }) => scope === 'servers!user')?.risk).toBeUndefined();
});

test('nothing is offered that nothing is behind', () => {
  expect(outline([])).toEqual([]);
  expect(outline(['shares!user=ada']).join(' ')).not.toContain('groups:shares');
});
