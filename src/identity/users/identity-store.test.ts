import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import {
  describeEachDatabase,
  recordAnnouncements,
  usePostgres,
} from '../../../test/support/databases.ts';
import { hasPostgres } from '../../../test/support/postgres.ts';
import { Secret } from '../../platform/config/secret.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { createIdentityStore } from './identity-store.ts';
import { createUserStore } from './user-store.ts';

const key = { authenticator: 'oidc', issuer: 'https://login.example', subject: '42' };
const sealer = createSealer([new Secret('first key')], 'auth-state');

describeEachDatabase('the identity store', (open) => {
  const openStore = async () => {
    const database = await open();
    const users = createUserStore(database);
    return {
      database,
      alice: await users.create({ name: 'alice' }),
      bob: await users.create({ name: 'bob' }),
      identities: createIdentityStore(database, { sealer }),
    };
  };

  test('finds a linked identity only by authenticator, issuer and subject together', async () => {
    const { identities, alice } = await openStore();
    const identity = await identities.link({ ...key, userId: alice.id, display: 'a@example' });
    expect(await identities.find(key)).toEqual(identity);
    expect(await identities.findById(identity.id)).toEqual(identity);
    expect(identity).toMatchObject({ userId: alice.id, display: 'a@example' });
    for (const other of [{ authenticator: 'x' }, { issuer: 'x' }, { subject: 'x' }]) {
      expect(await identities.find({ ...key, ...other })).toBeUndefined();
    }
  });

  test('links an identity again without harm, but never to a second user', async () => {
    const { identities, alice, bob } = await openStore();
    const first = await identities.link({ ...key, userId: alice.id, display: 'old' });
    const again = await identities.link({ ...key, userId: alice.id, display: 'new' });
    expect(again).toEqual({ ...first, display: 'new' });
    const stealing = identities.link({ ...key, userId: bob.id });
    await expect(stealing).rejects.toMatchObject({ code: 'conflict' });
    expect((await identities.find(key))?.userId).toBe(alice.id);
    const orphan = identities.link({ ...key, subject: '43', userId: 'nobody' });
    await expect(orphan).rejects.toMatchObject({ code: 'not_found' });
  });

  test('announces a new link and the end of one, not a login that finds its link', async () => {
    const { database, identities, alice } = await openStore();
    const changes = recordAnnouncements(database);
    const { id } = await identities.link({ ...key, userId: alice.id });
    expect(changes).toHaveLength(1);
    await identities.link({ ...key, userId: alice.id, display: 'new' });
    await identities.unlink(alice.id, 'another');
    expect(changes).toHaveLength(1);
    await identities.unlink(alice.id, id);
    expect(changes).toHaveLength(2);
  });

  test('gives an identity to one of two users who link it at once', async () => {
    const { identities, alice, bob } = await openStore();
    const results = await Promise.allSettled(
      [alice, bob].map(({ id }) => identities.link({ ...key, userId: id })),
    );
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('ends a link for its own user only', async () => {
    const { identities, alice, bob } = await openStore();
    const { id } = await identities.link({ ...key, userId: alice.id });
    expect(await identities.unlink(bob.id, id)).toBe('unknown');
    expect(await identities.listForUser(alice.id)).toHaveLength(1);
    expect(await identities.unlink(alice.id, id)).toBe('unlinked');
    expect(await identities.listForUser(alice.id)).toEqual([]);
  });

  test('keeps the auth state encrypted', async () => {
    const { database, identities, alice } = await openStore();
    const { id } = await identities.link({ ...key, userId: alice.id });
    await identities.setAuthState(id, { refresh_token: 'very-secret' }, new Date(1000));
    const { encrypted } = await database.kysely
      .selectFrom('auth_states')
      .select('encrypted')
      .executeTakeFirstOrThrow();
    expect(encrypted).not.toContain('very-secret');
    expect(Buffer.from(encrypted, 'base64url').toString('latin1')).not.toContain('very-secret');
    expect(await identities.findAuthState(id)).toEqual({
      state: { refresh_token: 'very-secret' },
      refreshedAt: new Date(1000),
    });
    await identities.setRefreshedAt(id, new Date(2000));
    expect(await identities.findAuthState(id)).toMatchObject({ refreshedAt: new Date(2000) });
    await identities.deleteAuthState(id);
    expect(await identities.findAuthState(id)).toBeUndefined();
  });

  test('keeps no auth state that is nested too deep to be read again', async () => {
    const { identities, alice } = await openStore();
    const { id } = await identities.link({ ...key, userId: alice.id });
    const state = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) as object;
    await expect(identities.setAuthState(id, { state }, new Date(1000))).rejects.toThrow(
      'JSON may be nested 100 levels deep.',
    );
  });

  test('tells the state that was confirmed last of all that a user has', async () => {
    const { identities, alice, bob } = await openStore();
    const { id: one } = await identities.link({ ...key, userId: alice.id });
    const { id: other } = await identities.link({ ...key, subject: '43', userId: alice.id });
    const { id: foreign } = await identities.link({ ...key, subject: '44', userId: bob.id });
    expect(await identities.findLatestAuthState(alice.id)).toBeUndefined();
    await identities.setAuthState(one, { from: 'one' }, new Date(2000));
    await identities.setAuthState(other, { from: 'other' }, new Date(1000));
    await identities.setAuthState(foreign, { from: 'bob' }, new Date(3000));
    expect(await identities.findLatestAuthState(alice.id)).toEqual({
      identityId: one,
      state: { from: 'one' },
      refreshedAt: new Date(2000),
    });
    await identities.setRefreshedAt(other, new Date(4000));
    expect(await identities.findLatestAuthState(alice.id)).toMatchObject({ identityId: other });
  });

  test('keeps a time without a state, and no state for an unknown identity', async () => {
    const { identities, alice } = await openStore();
    const { id } = await identities.link({ ...key, userId: alice.id });
    await identities.setAuthState(id, undefined, new Date(1000));
    expect(await identities.findAuthState(id)).toEqual({
      state: undefined,
      refreshedAt: new Date(1000),
    });
    const orphan = identities.setAuthState('nobody', {}, new Date(1000));
    await expect(orphan).rejects.toMatchObject({ code: 'not_found' });
  });

  test('opens no state that another key sealed or that was moved to another identity', async () => {
    const { database, identities, alice } = await openStore();
    const { id } = await identities.link({ ...key, userId: alice.id });
    const other = await identities.link({ ...key, subject: '43', userId: alice.id });
    await identities.setAuthState(id, { token: 'x' }, new Date(1000));
    const foreignProcesses = createIdentityStore(database, {
      sealer: createSealer([new Secret('another key')], 'auth-state'),
    });
    expect((await foreignProcesses.findAuthState(id))?.state).toBeUndefined();
    await database.kysely.updateTable('auth_states').set({ identity_id: other.id }).execute();
    expect(await identities.findAuthState(other.id)).toMatchObject({ state: undefined });
  });
});

describe.skipIf(!hasPostgres())('unlinking at two instances', () => {
  const cluster = usePostgres();

  test('at once leaves one way in, many times over', async () => {
    const url = await cluster().createDatabase();
    const log = pino({ level: 'silent' });
    await using first = await openDatabase(url, { directory: '.', log });
    await using second = await openDatabase(url, { directory: '.', log });
    const wayIn = { authenticators: ['oidc', 'github'], hasPasswords: true };
    const users = createUserStore(first);
    for (let round = 0; round < 20; round += 1) {
      const { id: userId } = await users.create({ name: `user-${round}` });
      const stores = [first, second].map((each) => createIdentityStore(each, { sealer }));
      const subject = `subject-${round}`;
      const links = await Promise.all(
        wayIn.authenticators.map((authenticator) =>
          stores[0]!.link({ ...key, authenticator, subject, userId }),
        ),
      );
      const outcomes = await Promise.all(
        stores.map((store, index) => store.unlink(userId, links[index]!.id, wayIn)),
      );
      expect(outcomes.toSorted()).toEqual(['last', 'unlinked']);
      expect(await stores[0]!.listForUser(userId)).toHaveLength(1);
    }
  });
});
