import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { RoleConfig } from '../../platform/config/config.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { applyRoles } from './load-roles.ts';
import { defaultRoles, type RoleAssignment } from './role.ts';
import { createRoleStore } from './role-store.ts';
import { createScopeCatalogue } from './scope-definitions.ts';

interface LogLine {
  readonly msg: string;
  readonly [key: string]: unknown;
}

async function openWorld() {
  const database = await openDatabase('sqlite::memory:', {
    directory: '.',
    log: pino({ level: 'silent' }),
  });
  const roles = createRoleStore(database);
  const users = new Map<string, boolean>();
  const groups = new Set<string>();
  const lines: LogLine[] = [];
  const log = pino(
    { level: 'debug' },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  );
  const load = (
    configured: RoleConfig[],
    options: { adminUsers?: string[]; managesRoles?: boolean } = {},
  ) =>
    applyRoles(configured, {
      roles,
      catalogue: createScopeCatalogue(),
      ensureUser: async (name) => {
        const stored = name.normalize('NFC');
        if (!users.has(stored)) users.set(stored, false);
        return stored;
      },
      ensureGroup: async (name) => {
        groups.add(name);
        return name;
      },
      memberNamesByGroup: async () => new Map(),
      administrators: {
        list: async () => [...users].flatMap(([name, isAdmin]) => (isAdmin ? [name] : [])),
        set: async (name, isAdmin) => void users.set(name, isAdmin),
      },
      log,
      ...options,
    });
  const members = async () =>
    (await roles.listAssignments()).map(
      ({ roleName, subjectKind, subjectName, origin }) =>
        `${roleName}: ${subjectKind} ${subjectName} (${origin})`,
    );
  return {
    database,
    roles,
    users,
    groups,
    lines,
    load,
    members,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

const given = (
  roleName: string,
  subjectKind: RoleAssignment['subjectKind'],
  subjectName: string,
  origin: string,
): RoleAssignment => ({ roleName, subjectKind, subjectName, origin });

test('stores the default roles without any configuration', async () => {
  await using world = await openWorld();
  await world.load([]);
  const { admin, server, token, user } = defaultRoles;
  expect(await world.roles.list()).toEqual([admin, server, token, user]);
});

test('defines roles, gives them their members and creates the users and groups there are not', async () => {
  await using world = await openWorld();
  await world.load([
    {
      name: 'reader',
      description: 'Reads.',
      scopes: ['read:users'],
      users: ['alice', 'alice', 'Zoe\u0308'],
      groups: ['staff'],
      services: ['wiki'],
    },
  ]);
  expect(await world.roles.getByName('reader')).toEqual({
    name: 'reader',
    description: 'Reads.',
    scopes: ['read:users'],
    origin: 'config',
  });
  expect(await world.members()).toEqual([
    'reader: group staff (config)',
    'reader: service wiki (config)',
    'reader: user Zoë (config)',
    'reader: user alice (config)',
  ]);
  expect([...world.users.keys()]).toEqual(['alice', 'Zoë']);
  expect([...world.groups]).toEqual(['staff']);
});

test('lays an override over a default role, and takes it back when it disappears', async () => {
  await using world = await openWorld();
  await world.load([{ name: 'user', scopes: ['self', 'access:services'] }]);
  expect(await world.roles.getByName('user')).toEqual({
    ...defaultRoles.user,
    scopes: ['self', 'access:services'],
    origin: 'config',
  });
  await world.load([{ name: 'user', description: 'People.' }]);
  expect(await world.roles.getByName('user')).toEqual({
    ...defaultRoles.user,
    description: 'People.',
    origin: 'config',
  });
  // With members alone it stays the hub's own.
  await world.load([{ name: 'user', groups: ['staff'] }]);
  expect(await world.roles.getByName('user')).toEqual(defaultRoles.user);
  await world.load([]);
  expect(await world.roles.getByName('user')).toEqual(defaultRoles.user);
});

test('removes roles that left the configuration, and no others', async () => {
  await using world = await openWorld();
  await world.roles.apply({
    save: [{ name: 'by-api', description: '', scopes: [], origin: 'api' }],
  });
  await world.roles.apply({
    save: [{ name: 'by-oidc', description: '', scopes: [], origin: 'oidc' }],
  });
  await world.load([{ name: 'reader', scopes: ['read:hub'], users: ['alice'] }]);
  await world.load([]);
  const left = (await world.roles.list()).map(({ name }) => name);
  expect(left).toEqual(['admin', 'by-api', 'by-oidc', 'server', 'token', 'user']);
  expect(await world.members()).toEqual([]);
  expect(world.lines).toContainEqual(
    expect.objectContaining({ msg: 'roles removed from configuration', roles: ['reader'] }),
  );
});

test('gives a listed kind exactly its members, no matter who gave the role before', async () => {
  await using world = await openWorld();
  await world.load([{ name: 'reader', scopes: ['read:hub'], users: ['alice', 'bob'] }]);
  await world.roles.apply({ assign: [given('reader', 'user', 'carol', 'api')] });
  await world.roles.apply({ assign: [given('reader', 'user', 'dan', 'oidc')] });
  await world.load([{ name: 'reader', scopes: ['read:hub'], users: ['bob', 'erin'] }]);
  expect(await world.members()).toEqual([
    'reader: user bob (config)',
    'reader: user erin (config)',
  ]);
  await world.load([{ name: 'reader', scopes: ['read:hub'], users: [] }]);
  expect(await world.members()).toEqual([]);
});

test('takes back its own members and keeps those of the API where a kind is not listed', async () => {
  await using world = await openWorld();
  await world.load([{ name: 'reader', scopes: ['read:hub'], users: ['alice'], groups: ['staff'] }]);
  await world.roles.apply({ assign: [given('reader', 'user', 'carol', 'api')] });
  await world.load([{ name: 'reader', scopes: ['read:hub'] }]);
  expect(await world.members()).toEqual(['reader: user carol (api)']);
});

test('a member of the API that gets listed belongs to the configuration from then on', async () => {
  await using world = await openWorld();
  await world.load([{ name: 'reader', scopes: ['read:hub'] }]);
  await world.roles.apply({ assign: [given('reader', 'user', 'carol', 'api')] });
  await world.load([{ name: 'reader', scopes: ['read:hub'], users: ['carol'] }]);
  expect(await world.members()).toEqual(['reader: user carol (config)']);
  await world.load([{ name: 'reader', scopes: ['read:hub'] }]);
  expect(await world.members()).toEqual([]);
});

test('keeps what a provider assigned only while it manages roles', async () => {
  await using world = await openWorld();
  await world.load([{ name: 'reader', scopes: ['read:hub'] }]);
  await world.roles.apply({ assign: [given('reader', 'user', 'dan', 'oidc')] });
  await world.load([{ name: 'reader', scopes: ['read:hub'] }], { managesRoles: true });
  expect(await world.members()).toEqual(['reader: user dan (oidc)']);
  await world.load([{ name: 'reader', scopes: ['read:hub'] }]);
  expect(await world.members()).toEqual([]);
});

test('takes members away from a default role that the configuration no longer mentions', async () => {
  await using world = await openWorld();
  await world.load([{ name: 'admin', groups: ['ops'] }]);
  expect(await world.members()).toEqual(['admin: group ops (config)']);
  await world.load([]);
  expect(await world.members()).toEqual([]);
});

test('administrators are exactly the listed users when the role admin lists some', async () => {
  await using world = await openWorld();
  world.users.set('old', true).set('alice', false).set('root', true);
  await world.load([{ name: 'admin', users: ['alice', 'new'] }], { adminUsers: ['root'] });
  expect(Object.fromEntries(world.users)).toEqual({
    old: false,
    alice: true,
    root: true,
    new: true,
  });
  expect(await world.members()).toEqual([]);
});

test('the administrator flag stays as it is when the role admin lists no users', async () => {
  await using world = await openWorld();
  world.users.set('old', true);
  await world.load([{ name: 'admin', services: ['culler'] }], { adminUsers: ['root'] });
  expect(Object.fromEntries(world.users)).toEqual({ old: true });
  expect(await world.members()).toEqual(['admin: service culler (config)']);
});

test('tells when a role obtained extra permissions, and which', async () => {
  await using world = await openWorld();
  const growth = () => world.lines.filter(({ msg }) => msg.includes('extra permissions'));
  await world.load([
    { name: 'reader', scopes: ['users', 'tokens!user', 'access:servers!server=a/'] },
  ]);
  await world.load([
    { name: 'reader', scopes: ['read:users', 'tokens!user', 'access:servers!server=a/'] },
  ]);
  expect(growth()).toEqual([]);
  await world.load([
    {
      name: 'reader',
      scopes: [
        'read:users',
        'tokens',
        'read:tokens!user',
        'access:servers!user=a',
        'self',
        'inherit',
      ],
    },
  ]);
  expect(growth()).toEqual([
    expect.objectContaining({
      role: 'reader',
      scopes: ['tokens', 'access:servers!user=a', 'self', 'inherit'],
    }),
  ]);
});

test('warns of what is probably not meant', async () => {
  await using world = await openWorld();
  await world.load([{ name: 'user', scopes: ['read:hub'] }]);
  expect(world.lines).toContainEqual(
    expect.objectContaining({ path: 'Hub.load_roles[0].scopes', msg: 'role set by configuration' }),
  );
});

test('changes and announces nothing when nothing changed', async () => {
  await using world = await openWorld();
  const configured = [{ name: 'reader', scopes: ['read:hub'], users: ['alice'] }];
  await world.load(configured);
  let announcements = 0;
  world.database.onChange(() => {
    announcements += 1;
  });
  await world.load(configured);
  expect(announcements).toBe(0);
});
