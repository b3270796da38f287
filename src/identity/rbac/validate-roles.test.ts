import { describe, expect, test } from 'vitest';
import { createScopeCatalogue } from './scope-definitions.ts';
import { roleWarnings, scopeProblem, validateRoles } from './validate-roles.ts';

const catalogue = createScopeCatalogue({
  'custom:wiki:read': { description: 'R.', subscopes: [] },
});
const context = { catalogue, serviceNames: ['wiki'] };
const pathsOf = (problems: readonly { path: string }[]) => problems.map(({ path }) => path);

describe('validateRoles', () => {
  test('accepts what an operator usually writes', () => {
    expect(
      validateRoles(
        [
          { name: 'user', scopes: ['self', 'access:services'] },
          { name: 'admin', users: ['alice'], groups: ['ops'], services: ['wiki'] },
          { name: 'server', scopes: ['users:activity!user', 'access:servers!server'] },
          { name: 'token', scopes: ['inherit'] },
          {
            name: 'idle-culler',
            description: 'Stops idle servers.',
            scopes: ['list:users', 'read:users:activity', 'read:servers', 'delete:servers'],
            services: ['wiki'],
          },
          {
            name: 'wiki-reader',
            scopes: ['custom:wiki:read!group=staff', 'access:users:servers!server=u/'],
          },
          { name: 'empty-role' },
        ],
        context,
      ),
    ).toEqual([]);
  });

  test.each(['abc', 'a-_~.9', `a${'x'.repeat(254)}`])('accepts the name %s', (name) => {
    expect(validateRoles([{ name, scopes: [] }], context)).toEqual([]);
  });

  test.each(['', 'ab', 'Abc', '1bc', 'ab-', 'a c', 'äbc', `a${'x'.repeat(255)}`, 'abc\n'])(
    'refuses the name %j',
    (name) => {
      expect(pathsOf(validateRoles([{ name, scopes: [] }], context))).toEqual([
        'Hub.load_roles[0].name',
      ]);
    },
  );

  test('lists every problem of every role at once', () => {
    const problems = validateRoles(
      [
        { name: 'admin', description: 'Mine.', scopes: ['self'] },
        { name: 'reader', scopes: ['nonsense', 'read:users', 'self!user=a', 'servers!tenant=x'] },
        { name: 'reader', services: ['wiki', 'blog'] },
        { name: 'X', users: ['', 'a/b', 'alice'], groups: ['', 'staff', 'x'.repeat(256)] },
        { name: 'user', users: ['alice'] },
      ],
      context,
    );
    expect(pathsOf(problems)).toEqual([
      'Hub.load_roles[0].description',
      'Hub.load_roles[0].scopes',
      'Hub.load_roles[1].scopes[0]',
      'Hub.load_roles[1].scopes[2]',
      'Hub.load_roles[1].scopes[3]',
      'Hub.load_roles[2].name',
      'Hub.load_roles[2].services[1]',
      'Hub.load_roles[3].name',
      'Hub.load_roles[3].users[0]',
      'Hub.load_roles[3].users[1]',
      'Hub.load_roles[3].groups[0]',
      'Hub.load_roles[3].groups[2]',
      'Hub.load_roles[4].users',
    ]);
    expect(problems[5]?.message).toContain('Hub.load_roles[1]');
    expect(problems[6]?.message).toContain('"blog"');
  });

  test('lets only the provider assign users and groups while it manages roles', () => {
    const roles = [{ name: 'reader', users: ['alice'], groups: [], services: ['wiki'] }];
    expect(pathsOf(validateRoles(roles, { ...context, managesRoles: true }))).toEqual([
      'Hub.load_roles[0].users',
      'Hub.load_roles[0].groups',
    ]);
  });
});

describe('roleWarnings', () => {
  test('warns of roles that allow nothing and of users without self', () => {
    const warnings = roleWarnings([
      { name: 'user', scopes: ['access:services'] },
      { name: 'empty', scopes: [] },
      { name: 'absent' },
      { name: 'token', scopes: [] },
    ]);
    expect(pathsOf(warnings)).toEqual(
      [0, 1, 2, 3].map((index) => `Hub.load_roles[${index}].scopes`),
    );
    expect(warnings[0]?.message).toContain('self');
  });

  test('does not warn of default roles that keep their scopes', () => {
    expect(
      roleWarnings([
        { name: 'user' },
        { name: 'admin', users: [] },
        { name: 'reader', scopes: ['read:hub'] },
        { name: 'server', scopes: ['self'] },
      ]),
    ).toEqual([]);
    for (const scopes of [
      ['self', 'read:hub'],
      ['tokens!user', 'access:services'],
    ])
      expect(roleWarnings([{ name: 'user', scopes }])).toEqual([]);
  });
});

test.each([
  ['read:users!user=*', 'wildcard'],
  ['read:groups!group=*', 'wildcard'],
  ['access:servers!server=*/', 'wildcard'],
  ['access:servers!server=ada/*', 'wildcard'],
  ['access:services!service=*', 'wildcard'],
  ['read:users!user=../ada', 'slash'],
  ['access:servers!server=a/b/c', 'slash'],
  ['access:servers!server=ada/..', 'name of a server'],
  ['read:users!user=ada\n', 'control character'],
])('the filter of %j, which no name can match, is refused', (scope, reason) => {
  expect(String(scopeProblem(scope, catalogue))).toContain(reason);
});

test.each(['read:users!user=zoë', 'access:servers!server=ada/', 'access:servers!server=ada/gpu-1'])(
  'the filter of %j is taken',
  (scope) => expect(scopeProblem(scope, catalogue)).toBeUndefined(),
);

test('scopeProblem accepts custom scopes and both spellings of access to servers', () => {
  for (const scope of [
    'custom:wiki:read',
    'access:users:servers',
    'access:servers!server',
    'self',
  ]) {
    expect(scopeProblem(scope, catalogue)).toBeUndefined();
  }
  expect(String(scopeProblem('custom:wiki:write', catalogue))).toContain('custom:wiki:write');
});
