import { type Kysely, sql, type Transaction } from 'kysely';
import { StartupError } from '../errors.ts';
import { advisoryLocks } from './advisory-locks.ts';
import type { Migration } from './migration.ts';
import { migration0001 } from './migrations/0001-initial.ts';
import { migration0002 } from './migrations/0002-user-order.ts';
import { migration0003 } from './migrations/0003-system-accounts.ts';
import { migration0004 } from './migrations/0004-account-authenticators.ts';
import { migration0005 } from './migrations/0005-token-makers.ts';
import { migration0006 } from './migrations/0006-instances.ts';
import { migration0007 } from './migrations/0007-changes.ts';
import { migration0008 } from './migrations/0008-service-owners.ts';
import { migration0009 } from './migrations/0009-shares.ts';
import { migration0010 } from './migrations/0010-audit.ts';
import { migration0011 } from './migrations/0011-runtime-services.ts';
import { migration0012 } from './migrations/0012-user-info.ts';
import { migration0013 } from './migrations/0013-server-limits.ts';
import { migration0014 } from './migrations/0014-user-marks.ts';
import { migration0015 } from './migrations/0015-start-times.ts';
import { migration0016 } from './migrations/0016-audit-arrivals.ts';
import { migration0017 } from './migrations/0017-service-stops.ts';
import { migration0018 } from './migrations/0018-notices.ts';
import { migration0019 } from './migrations/0019-audit-batches.ts';
import { migration0020 } from './migrations/0020-passkeys.ts';
import { migration0021 } from './migrations/0021-never-active.ts';
import { migration0022 } from './migrations/0022-recovery-codes.ts';
import { migration0023 } from './migrations/0023-audit-users.ts';
import { migration0024 } from './migrations/0024-server-order.ts';
import { migration0025 } from './migrations/0025-audit-entries.ts';
import { migration0026 } from './migrations/0026-server-end.ts';
import { migration0027 } from './migrations/0027-audit-repeats.ts';

/** Every step, in order; the version of a schema is the number of steps it has seen. Append only. */
export const migrations: readonly Migration[] = [
  migration0001,
  migration0002,
  migration0003,
  migration0004,
  migration0005,
  migration0006,
  migration0007,
  migration0008,
  migration0009,
  migration0010,
  migration0011,
  migration0012,
  migration0013,
  migration0014,
  migration0015,
  migration0016,
  migration0017,
  migration0018,
  migration0019,
  migration0020,
  migration0021,
  migration0022,
  migration0023,
  migration0024,
  migration0025,
  migration0026,
  migration0027,
];

export interface MigrateOptions {
  // biome-ignore lint/suspicious/noExplicitAny: a migration sees tables of every past schema
  readonly kysely: Kysely<any>;
  readonly dialect: 'sqlite' | 'postgres';
  readonly steps?: readonly Migration[];
}

/**
 * Brings the schema up to date, each step in a transaction of its own. Several processes may start
 * at once: the first one does the work while the others wait for its lock. Returns the names of the
 * steps taken here.
 */
export async function migrate({
  kysely,
  dialect,
  steps = migrations,
}: MigrateOptions): Promise<string[]> {
  const taken: string[] = [];
  for (;;) {
    const name = await kysely.transaction().execute(async (transaction) => {
      if (dialect === 'postgres') {
        await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLocks.migration)})`.execute(
          transaction,
        );
      }
      const version = await readVersion(transaction);
      if (version > steps.length) {
        throw new StartupError(
          `the database has version ${version}, this hub knows ${steps.length}: ` +
            'start the newer hub or restore a backup',
        );
      }
      const step = steps[version];
      if (step === undefined) {
        // Writing shows now, and not at the first login, that the database can be written.
        await sql`update hub_schema set version = ${version}`.execute(transaction);
        return undefined;
      }
      await step.up(transaction, dialect);
      await sql`update hub_schema set version = ${version + 1}`.execute(transaction);
      return step.name;
    });
    if (name === undefined) return taken;
    taken.push(name);
  }
}

async function readVersion(transaction: Transaction<unknown>): Promise<number> {
  await sql`create table if not exists hub_schema (version integer not null)`.execute(transaction);
  const { rows } = await sql<{ version: number }>`select version from hub_schema`.execute(
    transaction,
  );
  const version = rows[0]?.version;
  if (version !== undefined) return version;
  await sql`insert into hub_schema (version) values (0)`.execute(transaction);
  return 0;
}
