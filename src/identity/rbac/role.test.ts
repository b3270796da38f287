import { describe, expect, test } from 'vitest';
import { adminScopes, defaultRoles, findDefaultRole } from './role.ts';
import { resolveScopes } from './scope.ts';
import { createScopeCatalogue, isForServicesOnly, metascopes } from './scope-definitions.ts';

const catalogue = createScopeCatalogue();

describe('defaultRoles', () => {
  test('are user, admin, server and token', () => {
    expect(Object.keys(defaultRoles)).toEqual(['user', 'admin', 'server', 'token']);
    expect(defaultRoles.user.scopes).toEqual(['self']);
    expect(defaultRoles.token.scopes).toEqual(['inherit']);
    expect(defaultRoles.server.scopes).toEqual(['users:activity!user', 'access:servers!server']);
  });

  test.each(Object.values(defaultRoles))('$name holds only scopes that exist', ({ scopes }) => {
    const { unresolved } = resolveScopes(scopes, {
      catalogue,
      owner: { kind: 'user', name: 'a' },
      client: { clientId: 'hub-user-a', server: { userName: 'a', serverName: '' } },
      inherited: new Set(),
    });
    expect(unresolved).toEqual([]);
  });

  test('are found by name and by nothing else', () => {
    expect(findDefaultRole('admin')).toBe(defaultRoles.admin);
    expect(findDefaultRole('toString')).toBeUndefined();
  });
});

test('an administrator may do everything the hub checks, but what is for services alone', () => {
  const everything = catalogue.names.filter(
    (name) => !metascopes.has(name) && !isForServicesOnly(name, catalogue),
  );
  expect(catalogue.names.filter((name) => isForServicesOnly(name, catalogue))).toEqual(['gateway']);
  expect([...adminScopes(catalogue)].sort()).toEqual(everything.sort());
});
