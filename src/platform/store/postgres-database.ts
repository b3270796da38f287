import { sql } from 'kysely';
import { workLocks } from './advisory-locks.ts';
import { createAuditTrail } from './audit-trail.ts';
import { createChangeListeners } from './change-subject.ts';
import type { HubDatabase } from './database.ts';
import { retryAfterDeadlock } from './guarded-dialect.ts';
import { migrate } from './migrate.ts';
import { openPostgresChangeFeed } from './postgres-change-feed.ts';
import { openPostgresConnection, type PostgresConnectionOptions } from './postgres-connection.ts';
import { inTransaction } from './queries.ts';
import type { Tables } from './tables.ts';

/** Opens a PostgreSQL database as the hub's and brings its schema up to date. */
export async function openPostgresDatabase(
  options: PostgresConnectionOptions & {
    readonly maxStalenessMs: number;
    readonly instanceName?: string | undefined;
  },
): Promise<HubDatabase> {
  const { log, maxStalenessMs, instanceName } = options;
  const { kysely, urgent, answers, close, createClient, explain } =
    openPostgresConnection<Tables>(options);
  try {
    const steps = await migrate({ kysely, dialect: 'postgres' });
    if (steps.length > 0) log.info({ steps }, 'database schema up to date');
    // While there are connections to be had: later it may be too late.
    await sql`select 1`.execute(urgent);
    const listeners = createChangeListeners({ log });
    const feed = await openPostgresChangeFeed({
      createClient,
      onChange: listeners.callAll,
      maxStalenessMs,
      answers,
      log,
    });
    const audit = createAuditTrail({
      kysely,
      dialect: 'postgres',
      now: feed.now,
      instanceName,
      log,
    });
    return {
      kysely,
      urgent,
      longReads: kysely,
      dialect: 'postgres',
      transaction: (work) => retryAfterDeadlock(() => inTransaction(kysely, work)),
      audit,
      now: feed.now,
      // The lock ends with its transaction, and that with its connection.
      whileAlone: (work, run) =>
        kysely.transaction().execute(async (transaction) => {
          const lock = sql.lit(workLocks[work]);
          const { rows } = await sql<{ isMine: boolean }>`
            select pg_try_advisory_xact_lock(${lock}) as "isMine"`.execute(transaction);
          return rows[0]?.isMine === true ? await run() : undefined;
        }),
      problem: () => undefined,
      announceChange: listeners.callAll,
      async requestReload(instanceId) {
        await sql`insert into changes (kind, subject) values ('reload_requested', ${instanceId})`.execute(
          kysely,
        );
      },
      onChange: listeners.add,
      changeFeed: feed,
      contentVersion: () => undefined,
      async [Symbol.asyncDispose]() {
        await audit.flush();
        await feed[Symbol.asyncDispose]();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw explain(error);
  }
}
