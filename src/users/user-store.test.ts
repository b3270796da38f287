import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase, recordAnnouncements } from '../../test/support/databases.ts';
import { endLease, enterInstance } from '../../test/support/instances.ts';
import { explainQueryPlan, watchStatements } from '../../test/support/statements.ts';
import type { HubDatabase } from '../store/database.ts';
import { openDatabase } from '../store/open-database.ts';
import { createUserStore } from './user-store.ts';

const sorts = ['name', '-name', 'created', '-created', 'lastActivity', '-lastActivity'] as const;

describeEachDatabase('the user store', (open) => {
  const openStore = async () => {
    const database = await open();
    return { database, users: createUserStore(database) };
  };

  test('finds a created user by name and by id', async () => {
    const { users } = await openStore();
    const alice = await users.create({ name: 'alice', isAdmin: true });
    expect(await users.findByName('alice')).toEqual(alice);
    expect(await users.findById(alice.id)).toEqual(alice);
    expect(alice).toMatchObject({ name: 'alice', isAdmin: true, isInvited: false });
    expect(alice.lastActivityAt).toBeUndefined();
  });

  test('tells names of different case apart, and finds a name in any Unicode form', async () => {
    const { users } = await openStore();
    await users.create({ name: 'Alice' });
    await users.create({ name: 'Zoe\u0308' });
    expect(await users.findByName('alice')).toBeUndefined();
    expect(await users.findByName('Zo\u00eb')).toMatchObject({ name: 'Zo\u00eb' });
  });

  test('refuses a name that is taken, also when two create it at once', async () => {
    const { users } = await openStore();
    const results = await Promise.allSettled([
      users.create({ name: 'alice' }),
      users.create({ name: 'alice' }),
    ]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(users.create({ name: 'alice' })).rejects.toMatchObject({ code: 'conflict' });
    expect(await users.count()).toBe(1);
  });

  test('refuses a name that cannot be one', async () => {
    const { users } = await openStore();
    await expect(users.create({ name: 'a/b' })).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('says not_found for a user that is not there', async () => {
    const { users } = await openStore();
    await expect(users.getByName('nobody')).rejects.toMatchObject({ code: 'not_found' });
    await expect(users.setAdmin('nobody', true)).rejects.toMatchObject({ code: 'not_found' });
    await expect(users.rename('nobody', 'bob')).rejects.toMatchObject({ code: 'not_found' });
    expect(await users.delete('nobody')).toBe(false);
  });

  test('ensures a user once, also when others do at the same moment', async () => {
    const { users } = await openStore();
    const made = await Promise.all(
      ['zoe\u0308', 'zo\u00eb', 'zo\u00eb'].map((name) => users.ensure(name)),
    );
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(await users.findByName('zo\u00eb')).toEqual(made[0]);
    await expect(users.ensure('a/b')).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('creates those of many who are missing, in the order of their names', async () => {
    const { database, users } = await openStore();
    const changes = recordAnnouncements(database);
    await users.create({ name: 'bob' });
    const flags = { isAdmin: true, isInvited: true };
    const names = ['zoe\u0308', 'bob', 'x"\'y', 'alice', 'alice'];
    const created = await users.createMissing(names, flags);
    expect(created.map(({ name }) => name)).toEqual(['zo\u00eb', 'x"\'y', 'alice']);
    for (const user of created) {
      expect(await users.getByName(user.name)).toEqual(user);
      expect(user).toMatchObject({ ...flags, lastActivityAt: undefined });
    }
    expect(await users.getByName('bob')).toMatchObject({ isAdmin: false, isInvited: false });
    expect(changes).toEqual([{ kind: 'user_added' }, { kind: 'user_added' }]);
    expect(await users.createMissing(['bob'])).toEqual([]);
    expect(await users.createMissing([])).toEqual([]);
    expect(changes).toHaveLength(2);
    await expect(users.createMissing(['dan', 'a/b'])).rejects.toMatchObject({
      code: 'bad_request',
    });
    expect(await users.findByName('dan')).toBeUndefined();
  });

  test('makes one user an administrator, and no other', async () => {
    const { users } = await openStore();
    const { id } = await users.create({ name: 'alice' });
    await users.create({ name: 'bob' });
    await users.setAdmin(id, true);
    expect(await users.getByName('alice')).toMatchObject({ isAdmin: true, isInvited: false });
    expect(await users.getByName('bob')).toMatchObject({ isAdmin: false, isInvited: false });
  });

  test('lists pages in a stable order with the total of all pages', async () => {
    const { users } = await openStore();
    for (const name of ['b', 'B', 'a', 'ä']) await users.create({ name });
    const page = await users.list({ offset: 1, limit: 2 });
    expect(page.items.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(page.total).toBe(4);
    const all = await users.list({ offset: 0, limit: 10 });
    expect(all.items.map(({ name }) => name)).toEqual(['B', 'a', 'b', 'ä']);
    const reversed = await users.list({ offset: 0, limit: 10, sort: '-name' });
    expect(reversed.items.map(({ name }) => name)).toEqual(['ä', 'b', 'a', 'B']);
  });

  test('counts again after each change, and only then', async () => {
    const { users } = await openStore();
    const totalNow = async () => (await users.list({ offset: 0, limit: 1 })).total;
    expect(await totalNow()).toBe(0);
    const [alice] = await users.createMissing(['alice', 'bob', 'carol']);
    expect(await totalNow()).toBe(3);
    await users.create({ name: 'dave' });
    await users.ensure('erin');
    expect(await totalNow()).toBe(5);
    await users.delete(alice?.id ?? '');
    expect(await totalNow()).toBe(4);
    expect(await users.count()).toBe(4);
  });

  test('lists the same part from either end, in every order', async () => {
    const { users } = await openStore();
    const [, bob, cleo, dan] = await users.createMissing(['ann', 'bob', 'cleo', 'dan', 'eve']);
    const activity = [bob, cleo, dan].map((user, index) => [user?.id ?? '', new Date(9 - index)]);
    await users.recordActivity(new Map(activity as [string, Date][]));
    for (const sort of sorts) {
      const listed = async (offset: number, limit: number) =>
        (await users.list({ offset, limit, sort })).items.map(({ name }) => name);
      const all = await listed(0, 5);
      expect(new Set(all).size, sort).toBe(5);
      for (let offset = 0; offset <= 6; offset += 1) {
        for (const limit of [1, 2, 4, 9]) {
          expect(await listed(offset, limit), `${sort} ${offset} ${limit}`).toEqual(
            all.slice(offset, offset + limit),
          );
        }
      }
    }
  });

  test('filters by a part of the name in which % and _ mean themselves', async () => {
    const { users } = await openStore();
    for (const name of ['Alice', 'malice', 'a_b', 'axb', '100%']) await users.create({ name });
    const namesWith = async (nameFilter: string) =>
      (await users.list({ offset: 0, limit: 10, nameFilter })).items.map(({ name }) => name);
    expect(await namesWith('LIC')).toEqual(['Alice', 'malice']);
    expect(await namesWith('a_b')).toEqual(['a_b']);
    expect(await namesWith('%')).toEqual(['100%']);
  });

  test('sorts by activity, those who were never active first', async () => {
    const { users } = await openStore();
    const [, bob, carol] = [
      await users.create({ name: 'alice' }),
      await users.create({ name: 'bob' }),
      await users.create({ name: 'carol' }),
    ];
    await users.recordActivity(
      new Map([
        [bob.id, new Date(2000)],
        [carol.id, new Date(1000)],
        ['unknown', new Date(3000)],
      ]),
    );
    const namesBy = async (sort: 'lastActivity' | '-lastActivity') =>
      (await users.list({ offset: 0, limit: 10, sort })).items.map(({ name }) => name);
    expect(await namesBy('lastActivity')).toEqual(['alice', 'carol', 'bob']);
    expect(await namesBy('-lastActivity')).toEqual(['bob', 'carol', 'alice']);
  });

  test('lists only the given names, however many are given', async () => {
    const { users } = await openStore();
    for (const name of ['alice', 'bob']) await users.create({ name });
    const others = Array.from({ length: 70_000 }, (_, index) => `user-${index}`);
    const page = await users.list({ offset: 0, limit: 10, onlyNames: ['bob', ...others] });
    expect(page).toMatchObject({ total: 1, items: [{ name: 'bob' }] });
    expect((await users.list({ offset: 0, limit: 10, onlyNames: [] })).total).toBe(0);
  });

  test('lists by the state of servers', async () => {
    const { database, users } = await openStore();
    for (const [name, state] of [
      ['off', 'stopped'],
      ['soon', 'starting'],
      ['on', 'running'],
    ] as const) {
      await addServer(database, (await users.create({ name })).id, state);
    }
    for (const name of ['near', 'lost']) {
      await enterInstance(database, { id: `hub of ${name}` });
      await addServer(database, (await users.create({ name })).id, 'running', `hub of ${name}`);
    }
    await endLease(database, 'hub of lost');
    await users.create({ name: 'none' });
    const namesIn = async (serverState: 'active' | 'ready' | 'inactive') =>
      (await users.list({ offset: 0, limit: 10, serverState })).items.map(({ name }) => name);
    expect(await namesIn('active')).toEqual(['lost', 'near', 'on', 'soon']);
    expect(await namesIn('ready')).toEqual(['near', 'on']);
    expect(await namesIn('inactive')).toEqual(['none', 'off']);
  });

  test('moves activity forward and never back', async () => {
    const { users } = await openStore();
    const { id } = await users.create({ name: 'alice' });
    await users.recordActivity(new Map([[id, new Date(2000)]]));
    await users.recordActivity(new Map([[id, new Date(1000)]]));
    expect((await users.getByName('alice')).lastActivityAt).toEqual(new Date(2000));
  });

  test('keeps the roles of a renamed user', async () => {
    const { database, users } = await openStore();
    const { id } = await users.create({ name: 'alice' });
    await users.create({ name: 'bob' });
    await giveRole(database, 'alice');
    await expect(users.rename(id, 'bob')).rejects.toMatchObject({ code: 'conflict' });
    await users.rename(id, 'alicia');
    expect(await users.findById(id)).toMatchObject({ name: 'alicia' });
    expect(await roleHolders(database)).toEqual(['alicia']);
  });

  test('deletes everything of a deleted user and nothing of others', async () => {
    const { database, users } = await openStore();
    const [alice, bob] = [
      await users.create({ name: 'alice' }),
      await users.create({ name: 'bob' }),
    ];
    for (const { id, name } of [alice, bob]) {
      await addServer(database, id, 'running');
      await addBelongings(database, id);
      await giveRole(database, name);
    }
    expect(await users.delete(alice.id)).toBe(true);
    const { kysely } = database;
    for (const table of tablesOfUsers) {
      const rows = await kysely.selectFrom(table).select('user_id').execute();
      expect(rows, table).toEqual([{ user_id: bob.id }]);
    }
    expect(await roleHolders(database)).toEqual(['bob']);
    expect(await kysely.selectFrom('auth_states').select('identity_id').execute()).toHaveLength(1);
  });

  test('announces each change after it is made', async () => {
    const { database, users } = await openStore();
    const changes = recordAnnouncements(database);
    const { id } = await users.create({ name: 'alice' });
    await users.setAdmin(id, true);
    await users.rename(id, 'bob');
    await users.delete(id);
    expect(changes).toHaveLength(4);
  });
});

const tablesOfUsers = [
  'password_credentials',
  'second_factors',
  'invitations',
  'identities',
  'group_members',
  'login_sessions',
  'authorization_codes',
  'access_tokens',
  'servers',
] as const;

test('no page of users is found by sorting all of them', async () => {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const users = createUserStore(database);
  await users.createMissing(['ann', 'bob', 'cleo']);
  using watch = watchStatements();
  const statements = await watch.during(async () => {
    for (const sort of sorts) {
      await users.list({ offset: 0, limit: 1, sort });
      await users.list({ offset: 2, limit: 1, sort });
    }
  });
  // Two pages in each order; they are counted once.
  expect(statements).toHaveLength(2 * sorts.length + 1);
  for (const statement of statements) {
    expect(await explainQueryPlan(database, statement), statement).toMatch(
      /^SCAN users USING (?:COVERING )?INDEX \w+$/,
    );
  }
});

async function addServer(
  { kysely }: HubDatabase,
  userId: string,
  state: string,
  instanceId: string | null = null,
) {
  await kysely
    .insertInto('servers')
    .values({
      id: `server-${userId}`,
      user_id: userId,
      name: '',
      display_name: null,
      state,
      url: null,
      spawner_state: '{}',
      user_options: '{}',
      failure: null,
      created_at: 1,
      started_at: null,
      last_activity_at: null,
      instance_id: instanceId,
    })
    .execute();
}

async function addBelongings({ kysely }: HubDatabase, id: string) {
  const user_id = id;
  const times = { created_at: 1, expires_at: 2 };
  await kysely
    .insertInto('password_credentials')
    .values({ user_id, password_hash: 'x', must_change: 0, updated_at: 1 })
    .execute();
  await kysely
    .insertInto('second_factors')
    .values({
      user_id,
      totp_secret_encrypted: 'x',
      confirmed_at: null,
      recovery_code_hashes: '[]',
      last_step: null,
    })
    .execute();
  await kysely
    .insertInto('invitations')
    .values({
      id,
      secret_hash: id,
      purpose: 'invitation',
      user_id,
      created_by: 'x',
      used_at: null,
      ...times,
    })
    .execute();
  await kysely
    .insertInto('identities')
    .values({
      id,
      user_id,
      authenticator: 'oidc',
      issuer: 'i',
      subject: id,
      display: null,
      created_at: 1,
    })
    .execute();
  await kysely
    .insertInto('auth_states')
    .values({ identity_id: id, encrypted: 'x', refreshed_at: 1 })
    .execute();
  const group_id = `group-of-${id}`;
  await kysely
    .insertInto('groups')
    .values({ id: group_id, name: group_id, properties: '{}', origin: 'api', created_at: 1 })
    .execute();
  await kysely.insertInto('group_members').values({ group_id, user_id, origin: 'api' }).execute();
  await kysely
    .insertInto('login_sessions')
    .values({
      session_id: id,
      user_id,
      authenticator: 'oidc',
      identity_id: id,
      last_seen_at: 1,
      address: '127.0.0.1',
      user_agent: '',
      upstream_session_id: null,
      id_token_encrypted: null,
      ...times,
    })
    .execute();
  await kysely
    .insertInto('authorization_codes')
    .values({
      code_hash: id,
      client_id: 'c',
      user_id,
      session_id: id,
      redirect_uri: null,
      scopes: '[]',
      code_challenge: null,
      used_at: null,
      ...times,
    })
    .execute();
  await kysely
    .insertInto('access_tokens')
    .values({
      id,
      token_hash: id,
      kind: 'user',
      user_id,
      service_name: null,
      server_id: null,
      client_id: null,
      session_id: null,
      code_hash: null,
      scopes: '[]',
      note: '',
      last_used_at: null,
      ...times,
    })
    .execute();
}

async function giveRole({ kysely }: HubDatabase, userName: string) {
  await kysely
    .insertInto('roles')
    .values({ name: 'reader', description: '', scopes: '[]', origin: 'api' })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await kysely
    .insertInto('role_assignments')
    .values({ role_name: 'reader', subject_kind: 'user', subject_name: userName, origin: 'api' })
    .execute();
}

async function roleHolders({ kysely }: HubDatabase) {
  const rows = await kysely.selectFrom('role_assignments').select('subject_name').execute();
  return rows.map((row) => row.subject_name);
}
