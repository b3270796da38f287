import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { createShareStore } from '../../workloads/sharing/share-store.ts';
import { createGroupStore } from '../users/group-store.ts';
import { createUserStore } from '../users/user-store.ts';
import { createAuthorizer } from './authorizer.ts';
import { adminScopes, findDefaultRole } from './role.ts';
import { createRoleStore, type RoleStore } from './role-store.ts';
import { expandScopes } from './scope.ts';
import { createScopeCatalogue } from './scope-definitions.ts';

const catalogue = createScopeCatalogue();
const log = pino({ level: 'silent' });
const alice = { kind: 'user', name: 'alice' } as const;
const culler = { kind: 'service', name: 'culler' } as const;
const ownScopes = expandScopes(['self'], { catalogue, owner: alice });

async function openWorld(services: { name: string; admin: boolean }[] = []) {
  const database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const users = createUserStore(database);
  const groups = createGroupStore(database);
  const roles = createRoleStore(database);
  const shares = createShareStore(database);
  let lookups = 0;
  const counted: Pick<RoleStore, 'heldBy'> = {
    heldBy: (holder) => {
      lookups += 1;
      return roles.heldBy(holder);
    },
  };
  const authorizer = createAuthorizer({
    catalogue,
    users,
    groups,
    roles: counted,
    shares,
    services: () => services,
    database,
    log,
  });
  return {
    database,
    users,
    groups,
    roles,
    shares,
    authorizer,
    lookups: () => lookups,
    give: async (
      name: string,
      scopes: string[],
      kind: 'user' | 'group' | 'service',
      to: string,
    ) => {
      await roles.apply({ save: [{ name, description: '', scopes, origin: 'api' }] });
      await roles.apply({
        assign: [{ roleName: name, subjectKind: kind, subjectName: to, origin: 'api' }],
      });
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

test('every user may do everything with what is their own, and nothing else', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  expect(await world.authorizer.scopesOfOwner(alice)).toEqual(ownScopes);
});

test('an administrator holds the role admin as well', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice', isAdmin: true });
  expect(await world.authorizer.scopesOfOwner(alice)).toEqual(
    ownScopes.union(adminScopes(catalogue)),
  );
});

test('a user holds the roles of their groups, with self references meaning the user', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  await createGroup(world.groups, { name: 'staff' });
  await world.groups.addMembers('staff', ['alice'], 'api');
  await world.give('opener', ['access:services!service=wiki', 'shares!user'], 'group', 'staff');
  const scopes = await world.authorizer.scopesOfOwner(alice);
  expect(scopes).toContain('access:services!service=wiki');
  expect(scopes).toContain('shares!user=alice');
});

test('a service holds only what it was given', async () => {
  await using world = await openWorld([{ name: 'culler', admin: false }]);
  expect(await world.authorizer.scopesOfOwner(culler)).toEqual(new Set());
  await world.give('culling', ['list:users', 'self', 'servers!user'], 'service', 'culler');
  expect(await world.authorizer.scopesOfOwner(culler)).toEqual(
    new Set(['list:users', 'read:users:name']),
  );
});

test('a service with admin: true holds the role admin', async () => {
  await using world = await openWorld([{ name: 'culler', admin: true }]);
  expect(await world.authorizer.scopesOfOwner(culler)).toEqual(adminScopes(catalogue));
});

test('who does not exist may do nothing, whatever assignments are left behind', async () => {
  await using world = await openWorld();
  await world.give('left-behind', ['admin:users'], 'user', 'alice');
  await world.give('left-behind', ['admin:users'], 'service', 'culler');
  expect(await world.authorizer.scopesOfOwner(alice)).toEqual(new Set());
  expect(await world.authorizer.scopesOfOwner(culler)).toEqual(new Set());
  expect(
    await world.authorizer.effectiveScopes({ owner: alice, scopes: ['inherit', 'admin:users'] }),
  ).toEqual(new Set());
});

test('the stored spelling of a user name decides, not the one asked for', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'zo\u00eb' });
  const scopes = await world.authorizer.scopesOfOwner({ kind: 'user', name: 'zoe\u0308' });
  expect(scopes).toContain('read:users!user=zo\u00eb');
});

test('a token allows what it was given, as far as its owner still may', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  const token = { owner: alice, scopes: ['read:users', 'tokens!user=bob', 'access:services'] };
  expect(await world.authorizer.effectiveScopes(token)).toEqual(
    expandScopes(['read:users!user=alice'], { catalogue }),
  );
  await world.give('opener', ['access:services!service=wiki'], 'user', 'alice');
  expect(await world.authorizer.effectiveScopes(token)).toContain('access:services!service=wiki');
  await world.roles.apply({ remove: ['opener'] });
  expect(await world.authorizer.effectiveScopes(token)).not.toContain(
    'access:services!service=wiki',
  );
});

test('inherit is everything the owner may do, alone and beside other scopes', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  expect(await world.authorizer.effectiveScopes({ owner: alice, scopes: ['inherit'] })).toEqual(
    ownScopes,
  );
  expect(
    await world.authorizer.effectiveScopes({ owner: alice, scopes: ['inherit', 'admin:users'] }),
  ).toEqual(ownScopes);
});

test('a token without scopes allows nothing, not even to read the own name', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  expect(await world.authorizer.effectiveScopes({ owner: alice, scopes: [] })).toEqual(new Set());
});

test("the token of a user's server reports activity and opens that server, no other", async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  const scopes = findDefaultRole('server')?.scopes ?? [];
  const server = { userName: 'alice', serverName: 'gpu' };
  const client = { clientId: 'hub-user-alice-gpu', server };
  expect(await world.authorizer.effectiveScopes({ owner: alice, scopes, client })).toEqual(
    new Set([
      'users:activity!user=alice',
      'read:users:activity!user=alice',
      'access:servers!server=alice/gpu',
    ]),
  );
  const other = { clientId: 'hub-user-alice', server: { userName: 'alice', serverName: '' } };
  expect(await world.authorizer.effectiveScopes({ owner: alice, scopes, client: other })).toContain(
    'access:servers!server=alice/',
  );
  expect(await world.authorizer.effectiveScopes({ owner: alice, scopes })).not.toContain(
    'access:servers!server=alice/gpu',
  );
});

test('groups are consulted where scopes are restricted to one', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  await world.users.create({ name: 'bob' });
  await createGroup(world.groups, { name: 'class' });
  await world.groups.addMembers('class', ['bob'], 'api');
  await world.give('teacher', ['access:servers!group=class'], 'user', 'alice');
  const token = { owner: alice, scopes: ['access:servers!server=bob/'] };
  expect(await world.authorizer.effectiveScopes(token)).toEqual(
    new Set(['access:servers!server=bob/']),
  );
  expect((await world.authorizer.membership()).groupsOf('bob')).toEqual(new Set(['class']));
  await world.groups.removeMembers('class', ['bob']);
  expect(await world.authorizer.effectiveScopes(token)).toEqual(new Set());
  expect((await world.authorizer.membership()).groupsOf('bob')).toEqual(new Set());
});

test('answers come from memory until something changes', async () => {
  await using world = await openWorld([{ name: 'culler', admin: true }]);
  await world.users.create({ name: 'alice' });
  const token = { owner: alice, scopes: ['tokens'] };
  const ask = () =>
    Promise.all([
      world.authorizer.scopesOfOwner(alice),
      world.authorizer.scopesOfOwner(culler),
      world.authorizer.effectiveScopes(token),
    ]);
  const first = await ask();
  const second = await ask();
  expect(world.lookups()).toBe(2);
  first.forEach((scopes, index) => {
    expect(second[index]).toBe(scopes);
  });
  expect(world.authorizer.membership()).toBe(world.authorizer.membership());

  world.database.announceChange({ kind: 'rights_changed' });
  await ask();
  expect(world.lookups()).toBe(4);
});

test('an answer that was begun before a change is not given after it', async () => {
  await using world = await openWorld();
  const { id } = await world.users.create({ name: 'alice', isAdmin: true });
  const begun = world.authorizer.effectiveScopes({ owner: alice, scopes: ['admin:users'] });
  await world.users.setAdmin(id, false, { mayBeLast: true });
  await begun;
  expect(
    await world.authorizer.effectiveScopes({ owner: alice, scopes: ['admin:users'] }),
  ).not.toContain('admin:users');
});

test('a failed lookup is reported to the one who asked, and tried again for the next', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  let isDown = true;
  const authorizer = createAuthorizer({
    catalogue,
    users: {
      findByName: async (name) => {
        if (isDown) throw new Error('the database is away');
        return await world.users.findByName(name);
      },
    },
    groups: world.groups,
    roles: world.roles,
    shares: world.shares,
    services: () => [],
    database: world.database,
    log,
  });
  await expect(authorizer.scopesOfOwner(alice)).rejects.toThrow('away');
  isDown = false;
  expect(await authorizer.scopesOfOwner(alice)).toEqual(ownScopes);
});

test('a failure that comes after a change does not remove the newer answer', async () => {
  await using world = await openWorld();
  await world.users.create({ name: 'alice' });
  const failure = Promise.withResolvers<never>();
  let isFirst = true;
  const authorizer = createAuthorizer({
    catalogue,
    users: {
      findByName: (name) => {
        if (!isFirst) return world.users.findByName(name);
        isFirst = false;
        return failure.promise;
      },
    },
    groups: world.groups,
    roles: world.roles,
    shares: world.shares,
    services: () => [],
    database: world.database,
    log,
  });
  const first = authorizer.scopesOfOwner(alice);
  world.database.announceChange({ kind: 'rights_changed' });
  const second = authorizer.scopesOfOwner(alice);
  failure.reject(new Error('too late'));
  await expect(first).rejects.toThrow('too late');
  expect(authorizer.scopesOfOwner(alice)).toBe(second);
});
