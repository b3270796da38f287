import { describe, expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { untilLocksAreAwaited, whileLocked } from '../../../test/support/row-locks.ts';
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

  /** Exchanges a code by one statement, or by a transaction, which what is more than a token takes. */
  function exchangeOf({ database, token }: Awaited<ReturnType<typeof start>>, isPlain: boolean) {
    const codes = createAuthorizationCodeStore({ database });
    return (secret: string) =>
      codes.exchange(secret, () => ({
        outcome: 'granted',
        mayRefresh: !isPlain,
        remembersLogin: !isPlain,
        accessToken: token('one'),
      }));
  }

  describe.each([
    ['one statement', true],
    ['a transaction', false],
  ])('beside an exchange in %s', (_, isPlain) => {
    test('ends the token that it is about to give', async () => {
      const hub = await start();
      const { database, sessions, code, logIn, rowsOf } = hub;
      await logIn('one');
      const exchange = exchangeOf(hub, isPlain);
      const secret = await createAuthorizationCodeStore(hub).create(code('one'));
      // SQLite has one connection, on which one comes after the other in any case.
      if (dialect === 'sqlite') await Promise.all([exchange(secret), sessions.end('one')]);
      else {
        const both = await whileLocked(database, 'authorization_codes', async () => {
          const exchanged = exchange(secret);
          await untilLocksAreAwaited(database, 1);
          const ended = sessions.end('one');
          await untilLocksAreAwaited(database, 2);
          return [exchanged, ended] as const;
        });
        expect(await Promise.all(both)).toMatchObject([{ outcome: 'granted' }, true]);
      }
      expect(await rowsOf('one')).toEqual(nothing);
    });

    if (dialect === 'sqlite') return;

    test('ends the token of a code made meanwhile', async () => {
      const hub = await start();
      const { database, sessions, code, logIn, rowsOf } = hub;
      await logIn('one');
      const ended = await whileLocked(database, 'login_sessions', async () => {
        const end = sessions.end('one');
        await untilLocksAreAwaited(database, 1);
        const secret = await createAuthorizationCodeStore(hub).create(code('one'));
        expect(await exchangeOf(hub, isPlain)(secret)).toMatchObject({ outcome: 'granted' });
        return [end] as const;
      });
      expect(await ended[0]).toBe(true);
      expect(await rowsOf('one')).toEqual(nothing);
    });

    test('refuses a code made once its tokens are going', async () => {
      const hub = await start();
      const { database, sessions, tokens, token, code, logIn, rowsOf } = hub;
      await logIn('one');
      await tokens.create(token('one'));
      const both = await whileLocked(database, 'access_tokens', async () => {
        const end = sessions.end('one');
        await untilLocksAreAwaited(database, 1);
        const secret = await createAuthorizationCodeStore(hub).create(code('one'));
        const exchanged = exchangeOf(hub, isPlain)(secret);
        await Promise.race([exchanged, untilLocksAreAwaited(database, 2)]);
        return [exchanged, end] as const;
      });
      expect(await Promise.all(both)).toMatchObject([{ outcome: 'unknown' }, true]);
      expect(await rowsOf('one')).toMatchObject({ login_sessions: 0, access_tokens: 0 });
    });
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
