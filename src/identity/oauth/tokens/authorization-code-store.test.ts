import { expect, test } from 'vitest';
import { describeEachDatabase, recordAnnouncements } from '../../../../test/support/databases.ts';
import { explainQueryPlan, watchStatements } from '../../../../test/support/statements.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import { createUserStore } from '../../users/user-store.ts';
import { OAuthError } from '../oauth-error.ts';
import { createAccessTokenStore } from './access-token-store.ts';
import type { AuthorizationCode } from './authorization-code.ts';
import { createAuthorizationCodeStore, type ExchangeDecision } from './authorization-code-store.ts';

const grant = ({ userId, sessionId, scopes, clientId }: AuthorizationCode): ExchangeDecision => ({
  outcome: 'granted',
  mayRefresh: false,
  accessToken: { owner: { kind: 'user', userId }, clientId, sessionId, scopes, note: '' },
});
const refuse = (): ExchangeDecision => ({
  outcome: 'refused',
  error: new OAuthError('invalid_grant', 'no'),
});

async function createSession(
  database: HubDatabase,
  userId: string,
  sessionId: string,
  expiresAt: number,
) {
  await database.kysely
    .insertInto('login_sessions')
    .values({
      session_id: sessionId,
      user_id: userId,
      authenticator: 'password',
      identity_id: null,
      created_at: 0,
      last_seen_at: 0,
      expires_at: expiresAt,
      address: '',
      user_agent: '',
      upstream_session_id: null,
      id_token_encrypted: null,
    })
    .execute();
}

describeEachDatabase('authorization code store', (open, dialect) => {
  async function start() {
    const database = await open();
    let time = Date.now();
    const now = () => time;
    const codes = createAuthorizationCodeStore({ database, now });
    const tokens = createAccessTokenStore({ database, now });
    const alice = await createUserStore(database).create({ name: 'alice' });
    await createSession(database, alice.id, 'session', now() + 3_600_000);
    const code: AuthorizationCode = {
      clientId: 'service-wiki',
      userId: alice.id,
      sessionId: 'session',
      redirectUri: '/services/wiki/oauth_callback',
      scopes: ['read:users:name!user'],
      codeChallenge: 'challenge',
    };
    const skipSeconds = (seconds: number) => {
      time += seconds * 1000;
    };
    return { database, codes, tokens, alice, code, skipSeconds };
  }

  test('gives back what a code was made with, and stores only its hash', async () => {
    const { codes, code, database } = await start();
    const secret = await codes.create(code);
    const rows = await database.kysely.selectFrom('authorization_codes').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(secret);
    let taken: AuthorizationCode | undefined;
    const result = await codes.exchange(secret, (found) => {
      taken = found;
      return grant(found);
    });
    expect(taken).toMatchObject(code);
    expect(result.outcome).toBe('granted');
  });

  test('keeps the newest tokens of a client for each login, however often it asks', async () => {
    const { codes, tokens, code, alice, skipSeconds, database } = await start();
    const revoked: unknown[] = [];
    database.onChange((subject) => revoked.push(subject));
    const other = await codes.exchange(await codes.create({ ...code, clientId: 'other' }), grant);
    const ids: string[] = [];
    for (let round = 0; round < 23; round += 1) {
      skipSeconds(1);
      const result = await codes.exchange(await codes.create(code), grant);
      if (result.outcome === 'granted') ids.push(result.issued.id);
    }
    const left = (await tokens.listOfUser(alice.id)).map(({ id }) => id);
    expect(left).toHaveLength(21);
    expect(left).toEqual(expect.arrayContaining(ids.slice(3)));
    expect(other.outcome === 'granted' && left).toContain(
      other.outcome === 'granted' && other.issued.id,
    );
    expect(revoked).toContainEqual({ kind: 'tokens_revoked', tokenIds: [ids[0]] });
  });

  // Of PostgreSQL no one sees the statements, and two may run at once.
  if (dialect === 'sqlite') {
    test('exchanges a code by one query and one change', async () => {
      const { codes, code } = await start();
      const secret = await codes.create(code);
      using watch = watchStatements();
      const statements = await watch.during(() => codes.exchange(secret, grant));
      const kinds = statements.map((statement) => statement.split(' ')[0]);
      expect(kinds).toEqual(['select', 'begin', 'update', 'insert', 'commit']);
    });

    test('finds what a login or user has of a client without a look at what others have of it', async () => {
      const { codes, code, database, tokens, alice } = await start();
      using watch = watchStatements();
      const statements = await watch.during(async () => {
        await codes.exchange(await codes.create(code), grant);
        await codes.exchange(await codes.create(code), (found) => ({
          ...grant(found),
          mayRefresh: true,
        }));
        await tokens.listOfClientAndUser(code.clientId, alice.id);
        await tokens.revokeByClientAndUser(code.clientId, alice.id);
      });
      const ofClient = statements.filter((each) =>
        /^(select|update|delete).*client_id" = /s.test(each),
      );
      const plans = ofClient.map((each) => explainQueryPlan(database, each));
      expect(plans.length).toBeGreaterThan(5);
      for (const plan of await Promise.all(plans)) expect(plan).not.toMatch(/\(client_id=\?\)/);
    });

    test('gives nothing for a code whose browser session ends while it is looked at', async () => {
      const { codes, code, database, tokens, alice } = await start();
      await createSession(database, alice.id, 'other', Date.now() + 3_600_000);
      let ending: Promise<unknown> | undefined;
      const result = await codes.exchange(await codes.create(code), (found) => {
        const session = database.kysely.deleteFrom('login_sessions');
        ending ??= session.where('session_id', '=', found.sessionId).execute();
        return grant(found);
      });
      await ending;
      expect(result).toEqual({ outcome: 'unknown' });
      expect(await tokens.listOfUser(alice.id)).toEqual([]);
    });
  }

  test('keeps what was left out of the request left out', async () => {
    const { codes, code } = await start();
    const secret = await codes.create({
      ...code,
      redirectUri: undefined,
      codeChallenge: undefined,
    });
    await codes.exchange(secret, (found) => {
      expect(found).toMatchObject({ redirectUri: undefined, codeChallenge: undefined });
      return grant(found);
    });
  });

  test('lets exactly one of twenty parallel exchanges win, and revokes what it gave', async () => {
    const { codes, code, tokens, alice } = await start();
    const secret = await codes.create(code);
    const results = await Promise.all(
      Array.from({ length: 20 }, () => codes.exchange(secret, grant)),
    );
    const outcomes = results.map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'granted')).toHaveLength(1);
    // The first of the others ended the token; the rest found neither code nor token.
    expect(outcomes.filter((outcome) => outcome === 'replayed')).toHaveLength(1);
    expect(await tokens.listOfUser(alice.id)).toEqual([]);
  });

  test('lets exactly one of twenty parallel refusals decide', async () => {
    const { codes, code } = await start();
    const secret = await codes.create(code);
    const results = await Promise.all(
      Array.from({ length: 20 }, () => codes.exchange(secret, refuse)),
    );
    expect(results.filter(({ outcome }) => outcome === 'refused')).toHaveLength(1);
  });

  test('announces the revocation after a replay', async () => {
    const { codes, code, database } = await start();
    const secret = await codes.create(code);
    const given = await codes.exchange(secret, grant);
    if (given.outcome !== 'granted') throw new Error(given.outcome);
    const subjects = recordAnnouncements(database);
    expect(await codes.exchange(secret, grant)).toEqual({ outcome: 'replayed', revokedCount: 1 });
    const revoked = { kind: 'tokens_revoked', tokenIds: [given.issued.id] };
    expect(subjects).toEqual([revoked]);
  });

  test('notices a replay even after the code was purged', async () => {
    const { codes, code, tokens, skipSeconds } = await start();
    const secret = await codes.create(code);
    await codes.exchange(secret, grant);
    skipSeconds(301);
    expect(await tokens.purgeExpired()).toBe(1);
    expect(await codes.exchange(secret, grant)).toMatchObject({ outcome: 'replayed' });
  });

  test('leaves a refused code taken', async () => {
    const { codes, code } = await start();
    const secret = await codes.create(code);
    expect(await codes.exchange(secret, refuse)).toMatchObject({ outcome: 'refused' });
    expect(await codes.exchange(secret, grant)).toEqual({ outcome: 'unknown' });
  });

  test('forgets a code after 300 seconds', async () => {
    const { codes, code, skipSeconds } = await start();
    const [early, late] = [await codes.create(code), await codes.create(code)];
    skipSeconds(299);
    expect((await codes.exchange(early, grant)).outcome).toBe('granted');
    skipSeconds(1);
    expect(await codes.exchange(late, grant)).toEqual({ outcome: 'unknown' });
  });

  test('gives nothing for a code whose browser session is over', async () => {
    const { codes, code, database } = await start();
    const secret = await codes.create(code);
    await database.kysely.deleteFrom('login_sessions').execute();
    expect(await codes.exchange(secret, grant)).toEqual({ outcome: 'unknown' });
  });

  test('does not know a code that was never made', async () => {
    const { codes } = await start();
    expect(await codes.exchange('guess', grant)).toEqual({ outcome: 'unknown' });
  });

  test('leaves the code untaken when storing its token fails', async () => {
    const { codes, code } = await start();
    const secret = await codes.create(code);
    const broken = (found: AuthorizationCode) => grant({ ...found, userId: 'nobody' });
    await expect(codes.exchange(secret, broken)).rejects.toThrow();
    expect((await codes.exchange(secret, grant)).outcome).toBe('granted');
  });
});
