import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Kysely, sql } from 'kysely';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { StartupError } from '../errors.ts';
import { migrate, migrations, newestVersion } from './migrate.ts';
import type { Migration } from './migration.ts';
import type { Tables } from './tables.ts';

const tableNames = [
  'users',
  'retired_system_accounts',
  'user_info',
  'password_credentials',
  'second_factors',
  'recovery_codes',
  'passkeys',
  'invitations',
  'identities',
  'auth_states',
  'groups',
  'group_members',
  'roles',
  'role_assignments',
  'login_sessions',
  'authorization_codes',
  'access_tokens',
  'instances',
  'servers',
  'shares',
  'share_codes',
  'managed_processes',
  'service_owners',
  'service_stops',
  'runtime_services',
  'notices',
  'settings',
  'keyv',
  'audit',
  'audit_users',
  'audit_arrivals',
] as const satisfies readonly (keyof Tables)[];

/** They came after the first version, which the fixtures are of. */
type LaterTable =
  | 'favourite_services'
  | 'signing_keys'
  | 'grants'
  | 'refresh_tokens'
  | 'client_logins'
  | 'imported_tokens'
  | 'taken_tokens'
  | 'server_meters'
  | 'usage_records'
  | 'usage_totals'
  | 'budget_grants'
  | 'budgets'
  | 'home_spaces'
  | 'user_volumes';

/** A table that is missing above fails to compile here. */
const allTablesAreNamed: Exclude<
  keyof Tables,
  (typeof tableNames)[number] | LaterTable
> extends never
  ? true
  : false = true;

/** Columns that further steps add. */
const addedColumns: Partial<Record<keyof Tables, Record<string, null>>> = {
  users: { colour: null, suspended_at: null },
  servers: { kept_until: null, paused_at: null },
  access_tokens: { grant_id: null },
  login_sessions: { acr: null, amr: null },
  runtime_services: { headers_encrypted: null },
  authorization_codes: { nonce: null, authenticated_at: null, requested_scope: null },
};

type RowsOfAnything = Record<string, Record<string, unknown>>;
type RowsByTable = Record<string, Record<string, string | number | null>[]>;

/** The rows of a database that a past version of the program left behind. */
function readFixture(version: string): RowsByTable {
  const folder = join(import.meta.dirname, '../../../fixtures/databases');
  using past = new DatabaseSync(':memory:');
  past.exec(readFileSync(join(folder, `${version}.sql`), 'utf8'));
  const rows: RowsByTable = {};
  for (const name of tableNames) {
    rows[name] = past.prepare(`select * from "${name}"`).all() as RowsByTable[string];
  }
  return rows;
}

/** PostgreSQL gives these rows ids of its own. */
const numbered: ReadonlySet<string> = new Set(['audit', 'audit_arrivals']);

function withoutNumbers(table: string, rows: RowsByTable[string]): RowsByTable[string] {
  return numbered.has(table) ? rows.map(({ id: _, ...row }) => row) : rows;
}

/** In an order of our own: a row that a step changes may come last. */
function sorted<Entry>(rows: readonly Entry[]): Entry[] {
  return rows.toSorted((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1));
}

const addColumn: Migration = {
  name: 'add-column',
  async up(transaction) {
    await transaction.schema.alterTable('users').addColumn('colour', 'text').execute();
  },
};

describeEachDatabase('the schema', (open, dialect) => {
  const openRaw = async () => (await open()).kysely as unknown as Kysely<RowsOfAnything>;
  test('of version 0001 is opened with all its rows by a hub that knows a further step', async () => {
    const kysely = await openRaw();
    const rows = readFixture('0001');
    for (const name of tableNames) {
      expect(rows[name], name).not.toEqual([]);
      await kysely.insertInto(name).values(withoutNumbers(name, rows[name]!)).execute();
    }
    const steps = [...migrations, addColumn];
    expect(await migrate({ kysely, dialect, steps })).toEqual(['add-column']);
    for (const name of tableNames) {
      const found = await kysely.selectFrom(name).selectAll().execute();
      const expected = withoutNumbers(name, rows[name]!).map((row) => ({
        ...row,
        ...addedColumns[name],
      }));
      expect(sorted(withoutNumbers(name, found as RowsByTable[string])), name).toEqual(
        sorted(expected),
      );
    }
    expect(allTablesAreNamed).toBe(true);
  });

  test.for([1, 26])('of version %s, before the first release, is refused', async (version) => {
    const kysely = await openRaw();
    await sql`update hub_schema set version = ${sql.lit(version)}`.execute(kysely);
    const opening = migrate({ kysely, dialect });
    await expect(opening).rejects.toThrow(StartupError);
    await expect(opening).rejects.toThrow(
      `the database has version ${version}, of a hub before the first release`,
    );
    await expect(opening).rejects.toThrow('name a new database in Hub.database_url');
    expect(await versionOf(kysely)).toBe(version);
  });

  test('of a later version is refused and left as it is', async () => {
    const kysely = await openRaw();
    const later = newestVersion() + 1;
    await sql`update hub_schema set version = ${sql.lit(later)}`.execute(kysely);
    const opening = migrate({ kysely, dialect });
    await expect(opening).rejects.toThrow(StartupError);
    await expect(opening).rejects.toThrow(
      `the database has version ${later}, this hub knows ${newestVersion()}: ` +
        'start the newer hub or restore a backup',
    );
    expect(await versionOf(kysely)).toBe(later);
  });

  test('takes a new step once, also when several processes start together', async () => {
    const kysely = await openRaw();
    const steps = [...migrations, addColumn];
    const taken = await Promise.all(
      Array.from({ length: 4 }, () => migrate({ kysely, dialect, steps })),
    );
    expect(taken.flat()).toEqual(['add-column']);
    expect(await versionOf(kysely)).toBe(newestVersion(steps));
    expect(await migrate({ kysely, dialect, steps })).toEqual([]);
  });

  test('stays at the last good version when a step fails halfway', async () => {
    const kysely = await openRaw();
    const failing: Migration = {
      name: 'failing',
      async up(transaction) {
        await transaction.schema.createTable('half').addColumn('id', 'text').execute();
        throw new Error('out of luck');
      },
    };
    const migrating = migrate({ kysely, dialect, steps: [...migrations, addColumn, failing] });
    await expect(migrating).rejects.toThrow('out of luck');
    expect(await versionOf(kysely)).toBe(newestVersion() + 1);
    await expect(kysely.selectFrom('half').selectAll().execute()).rejects.toThrow(/half/);
    await kysely.selectFrom('users').select('colour').execute();
  });

  test('lets no row refer to a user that is not there', async () => {
    const { kysely } = await open();
    const orphan = kysely
      .insertInto('password_credentials')
      .values({ user_id: 'nobody', password_hash: '', must_change: 0, updated_at: 0 })
      .execute();
    await expect(orphan).rejects.toThrow(/foreign key/i);
  });
});

async function versionOf(kysely: Kysely<RowsOfAnything>): Promise<number | undefined> {
  const { rows } = await sql<{ version: number }>`select version from hub_schema`.execute(kysely);
  return rows[0]?.version;
}
