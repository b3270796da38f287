import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Kysely, sql } from 'kysely';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../test/support/databases.ts';
import { StartupError } from '../errors.ts';
import { createAuditStore } from './audit-store.ts';
import { migrate, migrations } from './migrate.ts';
import type { Migration } from './migration.ts';
import type { Tables } from './tables.ts';

const tableNames = [
  'users',
  'password_credentials',
  'identities',
  'auth_states',
  'second_factors',
  'invitations',
  'groups',
  'group_members',
  'roles',
  'role_assignments',
  'login_sessions',
  'authorization_codes',
  'access_tokens',
  'servers',
  'managed_processes',
  'settings',
  'keyv',
] as const satisfies readonly (keyof Tables)[];

/** Tables of later steps. */
const laterTableNames = [
  'retired_system_accounts',
  'instances',
  'service_owners',
  'shares',
  'share_codes',
  'audit',
  'audit_arrivals',
  'audit_users',
  'runtime_services',
  'user_info',
  'service_stops',
  'notices',
  'passkeys',
  'recovery_codes',
] as const satisfies readonly (keyof Tables)[];

/** A table that is missing above fails to compile here. */
const allTablesAreNamed: Exclude<
  keyof Tables,
  (typeof tableNames)[number] | (typeof laterTableNames)[number]
> extends never
  ? true
  : false = true;

type RowsOfAnything = Record<string, Record<string, unknown>>;
type RowsByTable = Record<string, Record<string, string | number | null>[]>;

/** The rows of a database that a past version of the program left behind. */
function readFixture(version: string): RowsByTable {
  const folder = join(import.meta.dirname, '../../fixtures/databases');
  using past = new DatabaseSync(':memory:');
  past.exec(readFileSync(join(folder, `${version}.sql`), 'utf8'));
  const rows: RowsByTable = {};
  for (const name of tableNames) {
    rows[name] = past.prepare(`select * from "${name}"`).all() as RowsByTable[string];
  }
  return rows;
}

const timeless = {
  idle_timeout_ms: null,
  max_age_ms: null,
  idle_from: null,
  age_from: null,
  stop_reason: null,
  starting_at: null,
  stopped_at: null,
  start_ms: null,
  start_profile: null,
};

/** The place of a default server among others. */
function rankOf({ state, failure }: RowsByTable[string][number]): number {
  if (state === 'stopped') return failure === null ? 3 : 4;
  return ['running', 'starting', 'stopping'].indexOf(String(state));
}

/** What later steps add to a row. */
function added(table: string, row: RowsByTable[string][number], all: RowsByTable) {
  if (table === 'access_tokens') return { made_by: null };
  if (table === 'servers') {
    return { instance_id: null, machine_id: null, is_queued: 0, ...timeless };
  }
  if (table === 'managed_processes') return { instance_id: null };
  if (table !== 'users') return {};
  const hasServer = all['servers']!.some(({ user_id }) => user_id === row['id']);
  const server = all['servers']!.find(({ user_id, name }) => user_id === row['id'] && name === '');
  const server_rank = server === undefined ? 3 : rankOf(server);
  return { system_account: hasServer ? row['name'] : null, made_for: null, server_rank };
}

/** The recovery codes of a user have rows of their own by now. */
function withoutCodes({ recovery_code_hashes: _moved, ...row }: RowsByTable[string][number]) {
  return row;
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
  test('of version 0001 is opened with all its rows', async () => {
    const kysely = await openRaw();
    const rows = readFixture('0001');
    await dropEverything(kysely, dialect);
    await migrate({ kysely, dialect, steps: migrations.slice(0, 1) });
    for (const name of tableNames) {
      expect(rows[name], name).not.toEqual([]);
      await kysely.insertInto(name).values(rows[name]!).execute();
    }
    await migrate({ kysely, dialect });
    for (const name of tableNames) {
      const expected = rows[name]!.map((row) => ({
        ...withoutCodes(row),
        ...added(name, row, rows),
      }));
      const found = await kysely.selectFrom(name).selectAll().execute();
      expect(sorted(found), name).toEqual(sorted(expected));
    }
    const codes = rows['second_factors']!.flatMap(({ user_id, recovery_code_hashes }) =>
      (JSON.parse(String(recovery_code_hashes)) as string[]).map((code_hash) => ({
        user_id,
        code_hash,
      })),
    );
    expect(codes).not.toEqual([]);
    const foundCodes = await kysely.selectFrom('recovery_codes').selectAll().execute();
    expect(sorted(foundCodes)).toEqual(sorted(codes));
    expect(allTablesAreNamed).toBe(true);
  });

  test('keeps what had been recorded and was on its way into the audit log', async () => {
    const database = await open();
    const kysely = database.kysely as unknown as Kysely<RowsOfAnything>;
    await dropEverything(kysely, dialect);
    await migrate({ kysely, dialect, steps: migrations.slice(0, 24) });
    const recorded = {
      at: 1_700_000_000_000,
      actor_kind: 'user',
      actor_name: 'zoë "z"',
      action: 'group.add_members',
      target_kind: 'group',
      target_name: 'team',
      result: 'done',
      detail: '{"origin":"api"}',
    };
    await kysely
      .insertInto('audit_arrivals')
      .values([
        { ...recorded, users: null, user_count: 1 },
        { ...recorded, users: '["bob","cleo"]', user_count: 2 },
      ])
      .execute();
    await migrate({ kysely, dialect });
    const { entries } = await createAuditStore(database).list({ filter: {}, limit: 9 });
    const expected = {
      at: new Date(recorded.at),
      actor: { kind: 'user', name: 'zoë "z"' },
      target: { kind: 'group', name: 'team' },
      detail: { origin: 'api' },
    };
    expect(entries).toMatchObject([
      { ...expected, users: ['bob', 'cleo'] },
      { ...expected, users: [] },
    ]);
  });

  test('of a later version is refused and left as it is', async () => {
    const kysely = await openRaw();
    const later = migrations.length + 1;
    await sql`update hub_schema set version = ${sql.lit(later)}`.execute(kysely);
    const opening = migrate({ kysely, dialect });
    await expect(opening).rejects.toThrow(StartupError);
    await expect(opening).rejects.toThrow(
      `the database has version ${later}, this hub knows ${migrations.length}: ` +
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
    expect(await versionOf(kysely)).toBe(steps.length);
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
    expect(await versionOf(kysely)).toBe(migrations.length + 1);
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

async function dropEverything(kysely: Kysely<RowsOfAnything>, dialect: 'sqlite' | 'postgres') {
  if (dialect === 'postgres') {
    await sql`drop schema public cascade; create schema public`.execute(kysely);
    return;
  }
  for (const name of ['hub_schema', ...tableNames, ...laterTableNames].toReversed()) {
    await sql`drop table ${sql.table(name)}`.execute(kysely);
  }
}
