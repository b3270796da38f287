import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { useOwnPostgres } from '../../../test/support/databases.ts';
import { endLease, enterInstance } from '../../../test/support/instances.ts';
import { hasPostgres } from '../../../test/support/postgres.ts';
import { type SilentRelay, startSilentRelay } from '../../../test/support/silent-relay.ts';
import { until } from '../../../test/support/test-hub.ts';
import type { ChangeSubject } from './change-subject.ts';
import type { HubDatabase } from './database.ts';
import { openDatabase } from './open-database.ts';
import { type LogPosition, purgeChangeLog, readChangeLog } from './postgres-change-log.ts';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

/** A process on the database that notes what it hears. */
async function listener(url: string) {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => lines.push(line) });
  const database = await openDatabase(url, { directory: '.', log });
  opened.push(database);
  const received: (ChangeSubject | undefined)[] = [];
  database.onChange((subject) => received.push(subject));
  const warnings = () =>
    lines.map((line) => JSON.parse(line)).filter(({ level }: { level: number }) => level >= 40);
  return { database, received, warnings };
}

/** A program that knows nothing of the hub. */
async function psql(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  opened.push({ [Symbol.asyncDispose]: () => client.end() });
  return client;
}

async function addUser({ kysely }: HubDatabase, name = 'alice'): Promise<string> {
  const id = randomUUID();
  const values = { id, name, admin: 0, invited: 0, created_at: 0 };
  await kysely.insertInto('users').values(values).execute();
  return id;
}

async function addSession(database: HubDatabase, userId: string, expiresAt = 9e12) {
  const sessionId = randomUUID();
  await database.kysely
    .insertInto('login_sessions')
    .values({
      session_id: sessionId,
      user_id: userId,
      authenticator: 'password',
      created_at: 0,
      last_seen_at: 0,
      expires_at: expiresAt,
      address: '',
      user_agent: '',
    })
    .execute();
  return sessionId;
}

async function addToken(database: HubDatabase, userId: string) {
  const id = randomUUID();
  await database.kysely
    .insertInto('access_tokens')
    .values({
      id,
      token_hash: id,
      kind: 'user',
      user_id: userId,
      scopes: '[]',
      note: '',
      created_at: 0,
    })
    .execute();
  return id;
}

const within = { timeout: 20_000 };

describe.skipIf(!hasPostgres())('changes in PostgreSQL', () => {
  const cluster = useOwnPostgres();

  test('are heard although the process that made them knew of no one to tell', async () => {
    const url = await cluster().createDatabase();
    const { database, received } = await listener(url);
    const client = await psql(url);
    const userId = await addUser(database);
    await expect.poll(() => received, within).toEqual([{ kind: 'user_added' }]);
    const [sessionId, tokenId] = [
      await addSession(database, userId),
      await addToken(database, userId),
    ];
    received.length = 0;

    await client.query('delete from login_sessions');
    await expect.poll(() => received, within).toEqual([{ kind: 'session_ended', sessionId }]);
    await client.query('delete from access_tokens');
    await expect
      .poll(() => received.slice(1), within)
      .toEqual([{ kind: 'tokens_revoked', tokenIds: [tokenId] }]);
    await client.query("insert into roles values ('r', '', '[]', 'api')");
    await expect.poll(() => received.slice(2), within).toEqual([{ kind: 'rights_changed' }]);
    await client.query('delete from users');
    await expect.poll(() => received.slice(3), within).toEqual([{ kind: 'rights_changed' }]);
    await client.query("insert into groups values ('g', 'g', '{}', 'api', 0)");
    await expect.poll(() => received.slice(4), within).toEqual([{ kind: 'groups_changed' }]);
    await client.query(
      "insert into runtime_services (name, client_id, definition) values ('s', 'service-s', '{}')",
    );
    await expect
      .poll(() => received.slice(5), within)
      .toEqual([{ kind: 'runtime_services_changed' }]);
    await client.query("insert into signing_keys values ('k', 'ES256', '', 0)");
    await expect.poll(() => received.slice(6), within).toEqual([{ kind: 'signing_keys_changed' }]);
  });

  test('are heard whatever the search path and the rights of those who make them', async () => {
    const url = await cluster().createDatabase();
    const { database, received } = await listener(url);
    await addUser(database);
    await expect.poll(() => received, within).toHaveLength(1);
    const client = await psql(url);
    await client.query(`
      create role clerk; grant usage on schema public to clerk; grant all on users to clerk;
      set role clerk; set search_path = pg_catalog`);
    await client.query('update public.users set admin = 1');
    await expect.poll(() => received.slice(1), within).toEqual([{ kind: 'rights_changed' }]);
  });

  test('that take nothing from anyone are not told', async () => {
    const url = await cluster().createDatabase();
    const { database, received } = await listener(url);
    const userId = await addUser(database);
    await addSession(database, userId, 1000);
    await addToken(database, userId);
    await expect.poll(() => received, within).toEqual([{ kind: 'user_added' }]);
    const client = await psql(url);
    await client.query(`
      update users set last_activity_at = 5, server_rank = 0, admin = 0;
      update access_tokens set last_used_at = 5;
      update login_sessions set last_seen_at = 5;
      delete from login_sessions;
      delete from group_members;
      update roles set scopes = scopes`);
    const { rows } = await client.query('select kind from changes');
    expect(rows).toEqual([{ kind: 'user_added' }]);
  });

  test('that concern no one wake no one up, as the renewal of a lease', async () => {
    const url = await cluster().createDatabase();
    const { database } = await listener(url);
    await enterInstance(database, { id: 'hub' });
    const userId = await addUser(database);
    const client = await psql(url);
    await client.query('listen hub_changed');
    const reported: (string | undefined)[] = [];
    client.on('notification', ({ payload }) => reported.push(payload));
    await endLease(database, 'hub');
    await database.kysely.updateTable('users').set({ last_activity_at: 1 }).execute();
    await database.kysely.deleteFrom('users').where('id', '<>', userId).execute();
    // They are heard in the order in which they were sent.
    await client.query("notify hub_changed, 'last'");
    await expect.poll(() => reported, within).toContain('last');
    expect(reported).toEqual(['last']);
  });

  test('are heard once each, also those of a transaction older than others that ended before', async () => {
    const url = await cluster().createDatabase();
    const { database, received } = await listener(url);
    const userId = await addUser(database);
    const [early, late, rolledBack] = [
      await addSession(database, userId),
      await addSession(database, userId),
      await addSession(database, userId),
    ];
    await expect.poll(() => received, within).toEqual([{ kind: 'user_added' }]);
    received.length = 0;
    const [slow, quick, lost] = [await psql(url), await psql(url), await psql(url)];
    const end = 'delete from login_sessions where session_id = $1';
    await slow.query('begin');
    await slow.query(end, [early]);
    await lost.query('begin');
    await lost.query(end, [rolledBack]);

    await quick.query(end, [late]);
    await expect.poll(() => received, within).toEqual([{ kind: 'session_ended', sessionId: late }]);
    // A reader that remembers only the highest number has gone past the slow one now.
    await slow.query('commit');
    await lost.query('rollback');
    await expect
      .poll(() => received.slice(1), within)
      .toEqual([{ kind: 'session_ended', sessionId: early }]);
    const { rows } = await quick.query('select subject from changes order by id');
    expect(rows.map(({ subject }) => subject)).toEqual([null, early, late]);
    await addUser(database, 'bob');
    await expect.poll(() => received.slice(2), within).toEqual([{ kind: 'user_added' }]);
  });

  async function throughRelay(): Promise<{ relay: SilentRelay; url: string; ownUrl: string }> {
    const ownUrl = await cluster().createDatabase();
    const relay = await startSilentRelay(cluster());
    opened.push(relay);
    const url = new URL(ownUrl);
    url.port = String(relay.port);
    return { relay, url: url.href, ownUrl };
  }

  test('are heard when the connection died without a word', async () => {
    const { relay, url, ownUrl } = await throughRelay();
    const { database, received, warnings } = await listener(url);
    const client = await psql(ownUrl);
    relay.silenceOpen();
    await client.query("insert into roles values ('r', '', '[]', 'api')");
    await until(() => received.length > 0, 'the change is heard');
    expect(received).toEqual([{ kind: 'rights_changed' }]);
    expect(database.changeFeed.lossCount).toBe(1);
    expect(warnings()).toMatchObject([
      {
        msg: 'database change feed lost',
        reason: 'no answer within 2 seconds',
      },
    ]);
  });

  test('are heard where a pooler loses notifications, and the log says so', async () => {
    const { relay, url, ownUrl } = await throughRelay();
    // What happens to it in transaction mode: another server connection gets the rest.
    relay.translate('listen ', 'notify ');
    const { database, received, warnings } = await listener(url);
    const client = await psql(ownUrl);
    await until(() => database.changeFeed.lossCount > 0, 'the hub notices that it hears nothing');
    expect(warnings()).toMatchObject([{ reason: expect.stringMatching(/session mode/) }]);
    await client.query("insert into roles values ('r', '', '[]', 'api')");
    await until(() => received.length > 0, 'the change is heard');
  });

  test('are heard on the same connection after this process was held up for seconds', async () => {
    const url = await cluster().createDatabase();
    const { database, received, warnings } = await listener(url);
    await addUser(database);
    await expect.poll(() => received, within).toHaveLength(1);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_500);
    await addUser(database, 'bob');
    await expect.poll(() => received, within).toHaveLength(2);
    expect(database.changeFeed.lossCount).toBe(0);
    expect(warnings()).toEqual([]);
  });

  test('that may have been purged, or were made on another server, count as any', async () => {
    const url = await cluster().createDatabase();
    const { database } = await listener(url);
    const client = await psql(url);
    const run = (text: string, values: readonly unknown[]) => client.query(text, [...values]);
    const read = (from: LogPosition | undefined) =>
      readChangeLog(run, from, { channel: 'test', payload: '' });
    const { position, ...first } = await read(undefined);
    expect(first).toEqual({ changes: [], isIncomplete: false });
    await addUser(database);
    expect(await read(position)).toMatchObject({
      changes: [{ kind: 'user_added', subject: null }],
      isIncomplete: false,
    });
    const slept = { ...position, atMs: position.atMs - 301_000 };
    expect((await read(slept)).isIncomplete).toBe(true);
    const remote = { ...position, serverStartedAt: '2001-01-01' };
    expect((await read(remote)).isIncomplete).toBe(true);
    await client.query(
      "insert into changes (kind) select 'rights_changed' from generate_series(1, 5001)",
    );
    expect((await read(position)).isIncomplete).toBe(true);
  });

  test('are purged once they could be read, by one at a time', async () => {
    const url = await cluster().createDatabase();
    const { database } = await listener(url);
    const [client, other, open] = [await psql(url), await psql(url), await psql(url)];
    const run = (text: string, values: readonly unknown[]) => client.query(text, [...values]);
    const count = async () => (await client.query('select 1 from changes')).rows.length;
    await addUser(database);
    await open.query('begin');
    await open.query("insert into changes (kind) values ('rights_changed')");
    const { position } = await readChangeLog(run, undefined, { channel: 'test', payload: '' });
    await addUser(database, 'bob');
    await open.query('commit');
    expect(await count()).toBe(3);

    await other.query('begin');
    await purgeChangeLog((text, values) => other.query(text, [...values]), {
      ...position,
      snapshot: '1:1:',
    });
    await purgeChangeLog(run, position);
    expect(await count()).toBe(3);
    await other.query('rollback');
    await purgeChangeLog(run, position);
    // What was not visible at the position stays, also where its number is lower.
    expect(await count()).toBe(2);
  });
});
