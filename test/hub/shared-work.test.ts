import { sql } from 'kysely';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { startPurging } from '../../src/composition/purge.ts';
import { createStores } from '../../src/composition/stores.ts';
import { createSigningKeys } from '../../src/identity/oauth/keys/signing-keys.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { openPostgresConnection } from '../../src/platform/store/postgres-connection.ts';
import { usePostgres } from '../support/databases.ts';
import { hasPostgres } from '../support/postgres.ts';

const auditSettings = { audit_retention_days: 0, audit_max_rows: 0 };
const log = pino({ level: 'silent' });
const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

describe.skipIf(!hasPostgres())('work for all processes on a PostgreSQL', () => {
  const cluster = usePostgres();

  async function openProcess(url: string) {
    const database = await openDatabase(url, { directory: '.', log });
    opened.push(database);
    const stores = createStores(database, [new Secret('0123456789abcdef0123456789abcdef')], log);
    const signingKeys = createSigningKeys({
      store: stores.signingKeyStore,
      database,
      days: 90,
      log,
    });
    const config = { Hub: auditSettings };
    const purging = startPurging({ ...stores, database, signingKeys, config, log });
    opened.push(purging);
    return { database, stores, purging };
  }

  test('is done by one at a time, and by another when that one is killed', async () => {
    const url = await cluster().createDatabase();
    const [first, second] = [await openProcess(url), await openProcess(url)];
    const { id: userId } = await second.stores.users.create({ name: 'alice' });
    await second.stores.loginSessions.create({
      sessionId: 'expired',
      userId,
      authenticator: 'password',
      createdAt: new Date(0),
      expiresAt: new Date(1000),
      address: '',
      userAgent: '',
      identityId: undefined,
      upstreamSessionId: undefined,
      idTokenSealed: undefined,
    });
    const sessions = async () =>
      (await second.database.kysely.selectFrom('login_sessions').selectAll().execute()).length;

    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    opened.push({ [Symbol.asyncDispose]: async () => ended.resolve() });
    const hanging = first.database.whileAlone('purge', async () => {
      begun.resolve();
      await ended.promise;
    });
    hanging.catch(() => {});
    await begun.promise;
    await second.purging.run();
    expect(await sessions()).toBe(1);

    const operator = openPostgresConnection({ url, log });
    opened.push({ [Symbol.asyncDispose]: () => operator.close() });
    // What the kernel does to the connections of a process that was killed.
    await sql`
      select pg_terminate_backend(pid) from pg_locks
      where locktype = 'advisory' and database = (
        select oid from pg_database where datname = current_database()
      )`.execute(operator.kysely);
    await expect
      .poll(async () => {
        await second.purging.run();
        return sessions();
      })
      .toBe(0);
    ended.resolve();
    await expect(hanging).rejects.toThrow();
  });
});
