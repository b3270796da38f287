import { expect, test } from 'vitest';
import { describeEachDatabase, recordAnnouncements } from '../../../test/support/databases.ts';
import { addServer } from '../../../test/support/server-rows.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createUserStore } from './user-store.ts';

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
    // Two administrators who do it in the same moment have done it once.
    const both = await Promise.all([users.delete(bob.id), users.delete(bob.id)]);
    expect(both.toSorted()).toEqual([false, true]);
  });

  test('announces each change after it is made', async () => {
    const { database, users } = await openStore();
    const changes = recordAnnouncements(database);
    const { id } = await users.create({ name: 'alice' });
    await users.create({ name: 'carol', isAdmin: true });
    await users.setAdmin(id, true);
    await users.rename(id, 'bob');
    await users.delete(id);
    expect(changes).toHaveLength(5);
  });

  test('keeps the last administrator, also when two take each other’s rights away', async () => {
    const { users } = await openStore();
    const ada = await users.create({ name: 'ada', isAdmin: true });
    const eve = await users.create({ name: 'eve', isAdmin: true });
    const ends = await Promise.allSettled([
      users.setAdmin(ada.id, false),
      users.setAdmin(eve.id, false),
    ]);
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const [last] = (await users.list({ offset: 0, limit: 2 })).items.filter(
      ({ isAdmin }) => isAdmin,
    );
    await expect(users.delete(last?.id ?? '')).rejects.toMatchObject({ code: 'conflict' });
    expect(await users.findByName(last?.name ?? '')).toMatchObject({ isAdmin: true });
  });
});

const tablesOfUsers = [
  'password_credentials',
  'second_factors',
  'passkeys',
  'recovery_codes',
  'invitations',
  'identities',
  'group_members',
  'login_sessions',
  'authorization_codes',
  'access_tokens',
  'servers',
] as const;

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
      last_step: null,
    })
    .execute();
  await kysely
    .insertInto('passkeys')
    .values({
      id,
      user_id,
      name: 'x',
      public_key: 'x',
      sign_count: 0,
      transports: '[]',
      verifies_user: 1,
      created_at: 1,
      last_used_at: null,
    })
    .execute();
  await kysely.insertInto('recovery_codes').values({ user_id, code_hash: 'x' }).execute();
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
