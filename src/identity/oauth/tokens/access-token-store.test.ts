import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { describeEachDatabase, recordAnnouncements } from '../../../../test/support/databases.ts';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { createUserStore } from '../../users/user-store.ts';
import { createAccessTokenStore } from './access-token-store.ts';

describeEachDatabase('access token store', (open) => {
  async function start() {
    const database = await open();
    let time = Date.now();
    const now = () => time;
    const store = createAccessTokenStore({ database, now });
    const alice = await createUserStore(database).create({ name: 'alice' });
    const bob = await createUserStore(database).create({ name: 'bob' });
    const changes = recordAnnouncements(database);
    const owner = { kind: 'user', userId: alice.id } as const;
    return {
      database,
      store,
      alice,
      bob,
      owner,
      now,
      skipSeconds(seconds: number) {
        time += seconds * 1000;
      },
      changeCount: () => changes.length,
      create: (more: object = {}) =>
        store.create({ owner, scopes: ['inherit'], note: 'n', ...more }),
    };
  }

  test('makes no more by hand than allowed, of many that are asked for at once', async () => {
    const { store, create, alice, owner, now, skipSeconds } = await start();
    await create({ clientId: 'service-wiki', sessionId: 'session' });
    const make = (more: object = {}) =>
      store.createWithin(3, alice.id, { owner, scopes: [], note: 'n', ...more });
    const expiring = await make({ expiresAt: new Date(now() + 1000) });
    const made = await Promise.all(Array.from({ length: 8 }, () => make()));
    expect(made.filter((token) => token !== undefined)).toHaveLength(2);
    expect(await store.listOfUser(alice.id)).toHaveLength(4);
    expect(expiring).toBeDefined();
    skipSeconds(2);
    expect(await make()).toBeDefined();
    expect(await make()).toBeUndefined();
  });

  test('makes none for a user who has been deleted', async () => {
    const { create } = await start();
    const owner = { kind: 'user', userId: randomUUID() };
    await expect(create({ owner })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('leaves none behind that was made with a token while that was revoked', async () => {
    const { store, create, alice, owner } = await start();
    for (let round = 0; round < 5; round += 1) {
      const { id } = await create();
      const child = await create({ madeBy: id });
      const make = async (madeBy: string) =>
        store.create({ owner, scopes: [], note: 'n', madeBy }).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'forbidden' });
        });
      await Promise.all([make(id), make(child.id), store.revoke(id), make(child.id), make(id)]);
      expect(await store.listOfUser(alice.id)).toEqual([]);
      await expect(create({ madeBy: id })).rejects.toMatchObject({ code: 'forbidden' });
    }
  });

  test('finds a token by its hash and keeps nothing that could be used', async () => {
    const { store, create, database, alice, now } = await start();
    const { id, token } = await create({
      scopes: ['read:users!user', 'tokens'],
      clientId: 'service-wiki',
      sessionId: 'session',
      expiresAt: new Date(now() + 1000),
    });
    expect(token).toMatch(/^hub_[A-Za-z0-9_-]{43}$/);
    expect(await store.findByHash(hashSecret(token))).toEqual({
      id,
      owner: { kind: 'user', name: 'alice' },
      userId: alice.id,
      clientId: 'service-wiki',
      sessionId: 'session',
      scopes: ['read:users!user', 'tokens'],
      note: 'n',
      createdAt: new Date(now()),
      expiresAt: new Date(now() + 1000),
    });
    const rows = await database.kysely.selectFrom('access_tokens').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  test("tells a service's and a server's own tokens from those of a user", async () => {
    const { store, create, database, alice } = await start();
    const serverId = randomUUID();
    await database.kysely
      .insertInto('servers')
      .values({
        id: serverId,
        user_id: alice.id,
        name: 'lab',
        display_name: null,
        state: 'running',
        url: null,
        spawner_state: '{}',
        user_options: '{}',
        failure: null,
        created_at: 0,
        started_at: null,
        last_activity_at: null,
      })
      .execute();
    const server = await create({ serverId });
    const service = await create({ owner: { kind: 'service', serviceName: 'wiki' } });
    expect((await store.findById(server.id))?.server).toEqual({
      id: serverId,
      userName: 'alice',
      serverName: 'lab',
    });
    expect(await store.findById(service.id)).toMatchObject({
      owner: { kind: 'service', name: 'wiki' },
    });
    expect(await store.revokeByServer(serverId)).toBe(1);
    expect(await store.findById(server.id)).toBeUndefined();
  });

  test('does not find an expired token, and purges it', async () => {
    const { store, create, now, skipSeconds } = await start();
    const { id, token } = await create({ expiresAt: new Date(now() + 10_000) });
    const { id: lasting } = await create();
    skipSeconds(9);
    expect(await store.findById(id)).toBeDefined();
    skipSeconds(1);
    expect(await store.findById(id)).toBeUndefined();
    expect(await store.findByHash(hashSecret(token))).toBeUndefined();
    expect(await store.purgeExpired()).toBe(1);
    expect(await store.findById(lasting)).toBeDefined();
  });

  test('lists the tokens of a user, newest first, and those granted to a client', async () => {
    const { store, create, owner, alice, bob, skipSeconds } = await start();
    const first = await create({ clientId: 'service-wiki' });
    skipSeconds(1);
    const second = await create();
    await create({ owner: { ...owner, userId: bob.id }, clientId: 'service-wiki' });
    expect((await store.listOfUser(alice.id)).map(({ id }) => id)).toEqual([second.id, first.id]);
    expect((await store.listOfClientAndUser('service-wiki', alice.id)).map(({ id }) => id)).toEqual(
      [first.id],
    );
  });

  test('revokes by id and by client and user, and announces it', async () => {
    const { store, create, owner, alice, bob, changeCount } = await start();
    const { id } = await create();
    await create({ clientId: 'a' });
    await create({ clientId: 'b' });
    await create({ clientId: 'b', owner: { ...owner, userId: bob.id } });
    await create();
    expect(await store.revoke(id)).toBe(1);
    expect(await store.revoke(id)).toBe(0);
    expect(await store.revokeByClientAndUser('a', alice.id)).toBe(1);
    expect(await store.revokeByClientAndUser('b', alice.id)).toBe(1);
    expect(await store.listOfUser(bob.id)).toHaveLength(1);
    expect(changeCount()).toBe(3);
  });

  test('loses the tokens of a user who is deleted', async () => {
    const { store, create, alice, database } = await start();
    const { id } = await create();
    await createUserStore(database).delete(alice.id);
    expect(await store.findById(id)).toBeUndefined();
  });

  test('records the last use and never sets it back', async () => {
    const { store, create } = await start();
    const { id } = await create();
    await store.recordUse(
      new Map([
        [id, new Date(5000)],
        ['unknown', new Date(1)],
      ]),
    );
    await store.recordUse(new Map([[id, new Date(4000)]]));
    expect((await store.findById(id))?.lastUsedAt).toEqual(new Date(5000));
  });
});
