import { type Kysely, sql, type Transaction } from 'kysely';
import { StartupError } from '../errors.ts';
import { advisoryLocks } from './advisory-locks.ts';
import type { Migration } from './migration.ts';
import { migration0001 } from './migrations/0001-initial.ts';
import { migration0002 } from './migrations/0002-suspended-users.ts';
import { migration0003 } from './migrations/0003-favourite-services.ts';
import { migration0004 } from './migrations/0004-audit-address.ts';
import { migration0005 } from './migrations/0005-openid.ts';
import { migration0006 } from './migrations/0006-grants.ts';
import { migration0007 } from './migrations/0007-requested-scope.ts';
import { migration0008 } from './migrations/0008-client-logins.ts';
import { migration0009 } from './migrations/0009-kept-servers.ts';
import { migration0010 } from './migrations/0010-usage.ts';
import { migration0011 } from './migrations/0011-imported-tokens.ts';
import { migration0012 } from './migrations/0012-paused-servers.ts';
import { migration0013 } from './migrations/0013-budget-grants.ts';
import { migration0014 } from './migrations/0014-taken-tokens.ts';
import { migration0015 } from './migrations/0015-budgets.ts';
import { migration0016 } from './migrations/0016-home-spaces.ts';
import { migration0017 } from './migrations/0017-user-volumes.ts';
import { migration0018 } from './migrations/0018-sealed-headers.ts';
import { migration0019 } from './migrations/0019-client-indexes.ts';

/** Every step, in order. Append only. */
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
];

/**
 * The version of the schema after the first step; each further one counts one up. The states before the first release
 * were counted too: the last of them is the first step's, and the earlier ones are known by their numbers.
 */
const firstVersion = 27;

/** The version to which the steps bring a schema. */
export function newestVersion(steps: readonly Migration[] = migrations): number {
  return firstVersion + steps.length - 1;
}

/** Why no step leads from a version of the schema, in a sentence; undefined where one does, or it is the newest. */
export function versionProblem(
  version: number,
  steps: readonly Migration[] = migrations,
): string | undefined {
  if (version > newestVersion(steps)) {
    return `the database has version ${version}, this hub knows ${newestVersion(steps)}: start the newer hub or restore a backup`;
  }
  if (version > 0 && version < firstVersion) {
    return `the database has version ${version}, of a hub before the first release, which no hub brings up to date: name a new database in Hub.database_url, or go back to the hub that made this one`;
  }
  return undefined;
}

/** The step from a version of the schema, 0 for an empty database; undefined from the newest. Throws StartupError. */
export function nextStep(
  version: number,
  steps: readonly Migration[] = migrations,
): Migration | undefined {
  const problem = versionProblem(version, steps);
  if (problem !== undefined) throw new StartupError(problem);
  return version === 0 ? steps[0] : steps[version - firstVersion + 1];
}

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
    const name = await kysely
      .transaction()
      .execute((transaction) => takeStep(transaction, dialect, steps));
    if (name === undefined) return taken;
    taken.push(name);
  }
}

/** Makes the schema of a version, which `versionProblem` has none with, in an empty database. */
export async function createSchema(
  transaction: Transaction<unknown>,
  dialect: 'sqlite' | 'postgres',
  version: number,
): Promise<void> {
  const steps = migrations.slice(0, version - firstVersion + 1);
  for (const _ of steps) await takeStep(transaction, dialect, steps);
}

/** Takes the next step, and returns its name. */
async function takeStep(
  transaction: Transaction<unknown>,
  dialect: 'sqlite' | 'postgres',
  steps: readonly Migration[],
): Promise<string | undefined> {
  if (dialect === 'postgres') {
    await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLocks.migration)})`.execute(
      transaction,
    );
  }
  const version = await readVersion(transaction);
  const step = nextStep(version, steps);
  if (step === undefined) {
    // Writing shows now, and not at the first login, that the database can be written.
    await sql`update hub_schema set version = ${version}`.execute(transaction);
    return undefined;
  }
  await step.up(transaction, dialect);
  const next = Math.max(version + 1, firstVersion);
  await sql`update hub_schema set version = ${next}`.execute(transaction);
  return step.name;
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
