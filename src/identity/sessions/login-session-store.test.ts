import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createAccessTokenStore } from '../oauth/tokens/access-token-store.ts';
import { createAuthorizationCodeStore } from '../oauth/tokens/authorization-code-store.ts';
import { createUserStore } from '../users/user-store.ts';
import { createLoginSessionStore } from './login-session-store.ts';

describeEachDatabase('login session store', (open, dialect) => {
  async function start() {
    const database = await open();
    const sessions = createLoginSessionStore(database);
    const tokens = createAccessTokenStore({ database });
    const { id: userId } = await createUserStore(database).create({ name: 'alice' });
    const code = (sessionId: string) => ({
      clientId: 'service-wiki',
      userId,
      sessionId,
      redirectUri: undefined,
      scopes: [],
      codeChallenge: undefined,
    });
    const token = (sessionId: string) => ({
      owner: { kind: 'user', userId } as const,
      sessionId,
      scopes: [],
      note: '',
    });
    return {
      database,
      sessions,
      tokens,
      code,
      token,
      logIn: (sessionId: string, expiresAt = new Date(Date.now() + 3_600_000), limit = 0) =>
        sessions.create(
          {
            sessionId,
            userId,
            authenticator: 'dummy',
            identityId: undefined,
            createdAt: new Date(),
            expiresAt,
            address: '',
            userAgent: '',
            upstreamSessionId: undefined,
            idTokenSealed: undefined,
          },
          { limit },
        ),
      async rowsOf(sessionId: string) {
        const counts: Record<string, number> = {};
        for (const table of ['login_sessions', 'access_tokens', 'authorization_codes'] as const) {
          const rows = await database.kysely
            .selectFrom(table)
            .select('session_id')
            .where('session_id', '=', sessionId)
            .execute();
          counts[table] = rows.length;
        }
        return counts;
      },
    };
  }

  const everything = { login_sessions: 1, access_tokens: 1, authorization_codes: 1 };
  const nothing = { login_sessions: 0, access_tokens: 0, authorization_codes: 0 };

  test('ends a session with its tokens and the codes not yet exchanged, and no other', async () => {
    const { database, sessions, tokens, code, token, logIn, rowsOf } = await start();
    const codes = createAuthorizationCodeStore({ database });
    for (const sessionId of ['one', 'two']) {
      await logIn(sessionId);
      await tokens.create(token(sessionId));
      await codes.create(code(sessionId));
    }
    const subjects: unknown[] = [];
    database.onChange((subject) => subjects.push(subject));
    expect(await sessions.end('one')).toBe(true);
    expect(await rowsOf('one')).toEqual(nothing);
    expect(await rowsOf('two')).toEqual(everything);
    expect(subjects).toContainEqual({ kind: 'session_ended', sessionId: 'one' });
    expect(await sessions.end('one')).toBe(false);
  });

  test('of which one is used notes that its user is active', async () => {
    const { database, sessions, logIn } = await start();
    await logIn('one');
    await logIn('two');
    const [earlier, later] = [new Date(Date.now() + 1000), new Date(Date.now() + 2000)];
    await sessions.recordSeen(
      new Map([
        ['one', later],
        ['two', earlier],
      ]),
    );
    const users = createUserStore(database);
    expect((await users.getByName('alice')).lastActivityAt).toEqual(later);
    await sessions.recordSeen(new Map([['two', earlier]]));
    expect((await users.getByName('alice')).lastActivityAt).toEqual(later);
  });

  test('counts sessions that have not expired, and their users', async () => {
    const { sessions, logIn } = await start();
    expect(await sessions.count()).toEqual({ sessions: 0, users: 0 });
    await logIn('one');
    await logIn('two');
    await logIn('gone', new Date(Date.now() - 60_000));
    expect(await sessions.count()).toEqual({ sessions: 2, users: 1 });
  });

  test('ends the token too that an exchange under way is about to give', async () => {
    const { database, sessions, code, token, logIn, rowsOf } = await start();
    await logIn('one');
    const isDone = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const codes = createAuthorizationCodeStore({
      database: {
        ...database,
        transaction: (work) =>
          database.transaction(async (transaction) => {
            const result = await work(transaction);
            isDone.resolve();
            await mayCommit.promise;
            return result;
          }),
      },
    });
    const secret = await createAuthorizationCodeStore({ database }).create(code('one'));
    const exchange = codes.exchange(secret, () => ({
      outcome: 'granted',
      mayRefresh: false,
      // What is more than a token is done in a transaction.
      remembersLogin: true,
      accessToken: token('one'),
    }));
    await isDone.promise;
    const end = sessions.end('one');
    // SQLite has one connection, on which the end comes after the exchange in any case.
    if (dialect === 'postgres') await Promise.race([end, untilOneWaitsForALock(database)]);
    mayCommit.resolve();
    expect((await exchange).outcome).toBe('granted');
    expect(await end).toBe(true);
    expect(await rowsOf('one')).toEqual(nothing);
  });

  test('ends the token that an exchange in one statement is about to give', async () => {
    const { database, sessions, code, token, logIn, rowsOf } = await start();
    await logIn('one');
    const codes = createAuthorizationCodeStore({ database });
    const secret = await codes.create(code('one'));
    const exchange = () =>
      codes.exchange(secret, () => ({
        outcome: 'granted',
        mayRefresh: false,
        accessToken: token('one'),
      }));
    if (dialect === 'postgres') {
      let exchanged: ReturnType<typeof exchange> | undefined;
      let ended: Promise<boolean> | undefined;
      await database.transaction(async (transaction) => {
        await transaction
          .selectFrom('authorization_codes')
          .select('code_hash')
          .forUpdate()
          .execute();
        exchanged = exchange();
        await untilOneWaitsForALock(database);
        ended = sessions.end('one');
      });
      await Promise.all([exchanged, ended]);
    } else await Promise.all([exchange(), sessions.end('one')]);
    expect(await rowsOf('one')).toEqual(nothing);
  });

  test('ends those of a user that were not used for longest, beyond a limit, with their tokens', async () => {
    const { database, sessions, tokens, token, logIn, rowsOf } = await start();
    for (const sessionId of ['old', 'used', 'idle']) await logIn(sessionId);
    await tokens.create(token('old'));
    const later = (ms: number) => new Date(Date.now() + ms);
    await sessions.recordSeen(
      new Map([
        ['old', later(-3000)],
        ['used', later(-1000)],
        ['idle', later(-2000)],
      ]),
    );
    const subjects: unknown[] = [];
    database.onChange((subject) => subjects.push(subject));
    expect(await logIn('new', later(1000), 3)).toEqual(['old']);
    expect(await rowsOf('old')).toEqual(nothing);
    expect(subjects).toContainEqual({ kind: 'session_ended', sessionId: 'old' });
    expect(await rowsOf('used')).toMatchObject({ login_sessions: 1 });
  });

  test('holds the limit when many logins begin at once', async () => {
    const { sessions, logIn, database } = await start();
    const ids = Array.from({ length: 8 }, (_, index) => `session-${index}`);
    await Promise.all(ids.map((sessionId) => logIn(sessionId, undefined, 3)));
    const { user_id } = await database.kysely
      .selectFrom('login_sessions')
      .select('user_id')
      .executeTakeFirstOrThrow();
    expect(await sessions.listOfUser(user_id)).toHaveLength(3);
  });

  test('purges what has expired, with its tokens, and keeps the rest', async () => {
    const { sessions, tokens, token, logIn, rowsOf } = await start();
    await logIn('over', new Date(Date.now() - 60_000));
    await logIn('open');
    for (const sessionId of ['over', 'open']) await tokens.create(token(sessionId));
    expect(await sessions.purgeExpired(new Date())).toBe(1);
    expect(await rowsOf('over')).toEqual(nothing);
    expect(await rowsOf('open')).toEqual({ ...everything, authorization_codes: 0 });
  });
});

async function untilOneWaitsForALock({ kysely }: HubDatabase): Promise<void> {
  const waiting = kysely
    .selectFrom('pg_stat_activity' as never)
    .select('pid' as never)
    .where('wait_event_type' as never, '=', 'Lock' as never);
  const deadline = Date.now() + 10_000;
  while ((await waiting.execute()).length === 0 && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
