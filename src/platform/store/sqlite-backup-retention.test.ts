import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate, migrations, newestVersion } from './migrate.ts';
import type { Migration } from './migration.ts';
import { keepCopyBeforeMigration } from './sqlite-backup-retention.ts';
import { openSqliteConnection } from './sqlite-database.ts';

const log = pino({ level: 'silent' });
const firstSchema = join(import.meta.dirname, '../../../fixtures/databases/0001.sql');
const addColumn: Migration = {
  name: '9999-colour',
  async up(transaction) {
    await transaction.schema.alterTable('users').addColumn('colour', 'text').execute();
  },
};
const steps = [...migrations, addColumn];
/** The first step that a database of the first release lacks, after which its copy is named. */
const next = steps[1]?.name;
let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hub-copies-'));
  file = join(directory, 'hub.sqlite');
});
afterEach(() => rmSync(directory, { recursive: true }));

function makeFirst(): void {
  using first = new DatabaseSync(file);
  first.exec(readFileSync(firstSchema, 'utf8'));
}

const copies = () => readdirSync(directory).filter((name) => /before|part/.test(name));

function read(path: string, query: string): unknown[] {
  using database = new DatabaseSync(path, { readOnly: true });
  return database
    .prepare(query)
    .all()
    .map((row) => Object.values(row)[0]);
}

/** As a hub that knows a further step. */
async function bringUpToDate(): Promise<string[]> {
  const connection = await openSqliteConnection({
    path: file,
    directory,
    lockTimeoutMs: 5_000,
    log,
  });
  try {
    await keepCopyBeforeMigration(connection.kysely, file, log, steps);
    return await migrate({ kysely: connection.kysely, dialect: 'sqlite', steps });
  } finally {
    await connection.close();
  }
}

test('a database is copied before a step, with its mode, and as it was', async () => {
  makeFirst();
  chmodSync(file, 0o640);
  expect(await bringUpToDate()).toEqual(steps.slice(1).map(({ name }) => name));
  const copy = `${file}.before-${next}`;
  expect(copies()).toEqual([`hub.sqlite.before-${next}`]);
  expect((statSync(copy).mode & 0o777).toString(8)).toBe('640');
  expect(read(copy, 'select version from hub_schema')).toEqual([27]);
  expect(read(copy, 'select name from users order by name')).toEqual(['alice', 'josé']);
  expect(read(file, 'select version from hub_schema')).toEqual([newestVersion(steps)]);
});

test('a database stays as it is when there is no room for the copy', async () => {
  makeFirst();
  // A folder stands where the copy belongs.
  mkdirSync(`${file}.before-${next}`);
  await expect(bringUpToDate()).rejects.toThrow(`before-${next}`);
  expect(read(file, 'select version from hub_schema')).toEqual([27]);
});

test('the last three copies are kept', async () => {
  makeFirst();
  for (const age of [1, 2, 3, 4]) {
    const copy = `${file}.before-${age}`;
    writeFileSync(copy, '');
    const time = Date.now() / 1000 - age * 3600;
    utimesSync(copy, time, time);
  }
  await bringUpToDate();
  expect(copies()).toEqual([
    `hub.sqlite.before-${next}`,
    'hub.sqlite.before-1',
    'hub.sqlite.before-2',
  ]);
});

test('a database that is new or up to date is not copied', async () => {
  expect(await bringUpToDate()).toEqual(steps.map(({ name }) => name));
  expect(await bringUpToDate()).toEqual([]);
  expect(copies()).toEqual([]);
});
