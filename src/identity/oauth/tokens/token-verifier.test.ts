import { hash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  startAuthorizationServer,
  wiki,
} from '../../../../test/protocol/harness.ts';
import { createLoginSessionStore } from '../../sessions/login-session-store.ts';
import { createTokenVerifier, type TokenVerifierDeps } from './token-verifier.ts';

let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  return () => hub[Symbol.asyncDispose]();
});

/** A verifier that counts how often it asks the database. */
function countingVerifier(more: Partial<TokenVerifierDeps> = {}) {
  let lookups = 0;
  const verifier = createTokenVerifier({
    ...hub,
    accessTokens: {
      findByHash(tokenHash) {
        lookups += 1;
        return hub.accessTokens.findByHash(tokenHash);
      },
      findById(id) {
        lookups += 1;
        return hub.accessTokens.findById(id);
      },
    },
    ...more,
  });
  return { verifier, lookups: () => lookups };
}

async function createToken(more: { expiresAt?: Date; clientId?: string } = {}) {
  const { user } = await hub.login('alice');
  return await hub.accessTokens.create({
    owner: { kind: 'user', userId: user.id },
    scopes: ['read:servers!user'],
    note: 'a note',
    ...more,
  });
}

test('tells who stands behind a token and what it allows', async () => {
  const expiresAt = new Date(Date.now() + 1000_000);
  const { id, token } = await createToken({ expiresAt });
  const caller = await hub.tokenVerifier.verify(token);
  expect(caller).toMatchObject({
    owner: { kind: 'user', name: 'alice' },
    user: { name: 'alice' },
    accessToken: { id, note: 'a note', expiresAt },
  });
  expect([...caller!.scopes].sort()).toEqual([
    'read:servers!user=alice',
    'read:users:name!user=alice',
  ]);
});

test('says which session, client and server a token belongs to', async () => {
  const alice = await hub.login('alice');
  const granted = await hub.tokenVerifier.verify(await hub.obtainToken(alice));
  expect(granted).toMatchObject({
    sessionId: alice.sessionId,
    accessToken: { clientId: 'service-wiki', sessionId: alice.sessionId },
  });
  expect(granted!.scopes.has('access:services!service=wiki')).toBe(true);

  const { secret } = await hub.createServerOf(alice.user, 'lab');
  const server = await hub.tokenVerifier.verify(secret);
  expect(server!.accessToken!.server).toEqual({ userName: 'alice', serverName: 'lab' });
  expect([...server!.scopes]).toContain('access:servers!server=alice/lab');
});

test('finds the bearer of a token by its id too, as long as the token is good', async () => {
  const { verifier, lookups } = countingVerifier();
  const { id, token } = await createToken();
  const bearer = await verifier.findBearer(id);
  expect(bearer).toEqual(await verifier.verify(token));
  const before = lookups();
  expect(await verifier.findBearer(id)).toBe(bearer);
  expect(lookups()).toBe(before);
  await hub.accessTokens.revoke(id);
  expect(await verifier.findBearer(id)).toBeUndefined();
});

test('knows the tokens of configured services without the database', async () => {
  const { verifier, lookups } = countingVerifier();
  expect(await verifier.verify(wiki.secret)).toMatchObject({
    owner: { kind: 'service', name: 'wiki' },
  });
  hub.serviceTokens.set('wiki', 'another-secret-0123');
  expect(await verifier.verify(wiki.secret)).toBeUndefined();
  expect(lookups()).toBe(1);
});

test.each(['', 'guess', 'x'.repeat(100_000), 'hub_é\u0000'])(
  'identifies no user behind %#',
  async (token) => {
    expect(await hub.tokenVerifier.verify(token)).toBeUndefined();
  },
);

describe('memory', () => {
  test('answers again without the database, yes or no', async () => {
    const { verifier, lookups } = countingVerifier();
    const { token } = await createToken();
    const first = await verifier.verify(token);
    expect(await verifier.verify(token)).toBe(first);
    expect(lookups()).toBe(1);
    await verifier.verify('guess');
    await verifier.verify('guess');
    expect(lookups()).toBe(2);
  });

  test('is emptied by a revocation at once', async () => {
    const { id, token } = await createToken();
    expect(await hub.tokenVerifier.verify(token)).toBeDefined();
    await hub.accessTokens.revoke(id);
    expect(await hub.tokenVerifier.verify(token)).toBeUndefined();
  });

  test('keeps all others when a token is revoked, a login ends or a user is added', async () => {
    const { verifier, lookups } = countingVerifier();
    const [kept, revoked] = [await createToken(), await createToken()];
    const leaving = await hub.login('bob');
    const bound = await hub.obtainToken(leaving);
    for (const token of [kept.token, revoked.token, bound]) await verifier.verify(token);
    const before = lookups();
    await hub.accessTokens.revoke(revoked.id);
    await createLoginSessionStore(hub.database).end(leaving.sessionId);
    await hub.login('another');
    expect(await verifier.verify(kept.token)).toBeDefined();
    expect(lookups()).toBe(before);
    expect(await verifier.verify(revoked.token)).toBeUndefined();
    expect(await verifier.verify(bound)).toBeUndefined();
  });

  test('is emptied when roles change', async () => {
    const { token } = await createToken();
    expect((await hub.tokenVerifier.verify(token))!.scopes.size).toBe(2);
    await hub.roles.apply({
      save: [
        {
          ...(await hub.roles.getByName('user')),
          scopes: ['read:users:name!user'],
        },
      ],
    });
    expect((await hub.tokenVerifier.verify(token))!.scopes).toEqual(
      new Set(['read:users:name!user=alice']),
    );
  });

  test('never outlives the token', async () => {
    const { token } = await createToken({ expiresAt: new Date(Date.now() + 30_000) });
    expect(await hub.tokenVerifier.verify(token)).toBeDefined();
    hub.skipSeconds(31);
    expect(await hub.tokenVerifier.verify(token)).toBeUndefined();
  });

  test('keeps a refusal for a short time only', async () => {
    let time = 0;
    const { verifier, lookups } = countingVerifier({
      database: {
        ...hub.database,
        changeFeed: { knownAtMs: () => time, isLost: () => false, lossCount: 0 },
      },
    });
    await verifier.verify('guess');
    time = 5000;
    await verifier.verify('guess');
    expect(lookups()).toBe(2);
  });

  test('does not keep an answer that was begun before a change', async () => {
    const { id, token } = await createToken();
    const started = Promise.withResolvers<void>();
    const proceed = Promise.withResolvers<void>();
    const verifier = createTokenVerifier({
      ...hub,
      accessTokens: {
        ...hub.accessTokens,
        async findByHash(tokenHash) {
          const found = await hub.accessTokens.findByHash(tokenHash);
          started.resolve();
          await proceed.promise;
          return found;
        },
      },
    });
    const slow = verifier.verify(token);
    await started.promise;
    await hub.accessTokens.revoke(id);
    proceed.resolve();
    await slow;
    expect(await verifier.verify(token)).toBeUndefined();
  });

  test('is bounded, and guesses do not push valid tokens out', async () => {
    const { verifier, lookups } = countingVerifier({ cacheSize: 2 });
    const { token } = await createToken();
    await verifier.verify(token);
    for (const guess of ['a', 'b', 'c']) await verifier.verify(guess);
    await verifier.verify(token);
    expect(lookups()).toBe(4);
    await verifier.verify('a');
    expect(lookups()).toBe(5);
  });
});

test('refuses a token whose user is gone', async () => {
  const { token } = await createToken();
  await hub.tokenVerifier.verify(token);
  await hub.users.delete((await hub.users.getByName('alice')).id);
  expect(await hub.tokenVerifier.verify(token)).toBeUndefined();
});

test('refuses a token whose client is gone', async () => {
  const { token } = await createToken({ clientId: 'service-removed' });
  expect(await hub.tokenVerifier.verify(token)).toBeUndefined();
});

test('records when a token was used, off the path of the request', async () => {
  const { id, token } = await createToken();
  await hub.tokenVerifier.verify(token);
  expect((await hub.accessTokens.findById(id))!.lastUsedAt).toBeUndefined();
  await hub.useRecorder.flush();
  expect((await hub.accessTokens.findById(id))!.lastUsedAt).toBeInstanceOf(Date);
});

test('knows a token that was taken over from a JupyterHub, and replaces its hash at the first use', async () => {
  // As JupyterHub keeps one that it made, and one that somebody chose.
  const tooLong = `44e1${'x'.repeat(300)}`;
  const rounds = {
    '44e1d5a6c8e44ab5a6a9dbaed6a7c1b0': 1,
    'chosen-by-a-grader': 16_384,
    [tooLong]: 16_384,
  };
  const idOf: Record<string, string> = {};
  const { kysely } = hub.database;
  for (const [token, count] of Object.entries(rounds)) {
    const { id } = await createToken();
    idOf[token] = id;
    const hex = hash('sha512', `90af61b9${token.repeat(count)}`);
    const row = { access_token_id: id, prefix: token.slice(0, 4) };
    await kysely
      .insertInto('imported_tokens')
      .values([{ ...row, hash: `sha512:${count}:90af61b9:${hex}` }])
      .execute();
  }
  const first = countingVerifier();
  expect(await first.verifier.verify('44e1of-somebody-else')).toBeUndefined();
  // Anybody could ask for such hashes.
  expect(await first.verifier.verify(tooLong)).toBeUndefined();
  delete idOf[tooLong];
  for (const [token, id] of Object.entries(idOf))
    expect((await first.verifier.verify(token))?.accessToken?.id).toBe(id);
  expect(await kysely.selectFrom('imported_tokens').selectAll().execute()).toHaveLength(1);

  const later = countingVerifier();
  for (const token of Object.keys(idOf)) expect(await later.verifier.verify(token)).toBeDefined();
  expect(later.lookups()).toBe(2);
});
