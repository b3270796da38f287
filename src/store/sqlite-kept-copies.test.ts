import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDatabase } from './open-database.ts';

const log = pino({ level: 'silent' });
const firstSchema = join(import.meta.dirname, '../../fixtures/databases/0001.sql');
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hub-copies-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

async function openAndClose(): Promise<string[]> {
  await using _database = await openDatabase('sqlite:hub.sqlite', { directory, log });
  return readdirSync(directory).filter((name) => /before|part/.test(name));
}

test('the last three copies are kept', async () => {
  {
    using past = new DatabaseSync(join(directory, 'hub.sqlite'));
    past.exec(readFileSync(firstSchema, 'utf8'));
  }
  for (const age of [1, 2, 3, 4]) {
    const copy = join(directory, `hub.sqlite.before-${age}`);
    writeFileSync(copy, '');
    const time = Date.now() / 1000 - age * 3600;
    utimesSync(copy, time, time);
  }
  const kept = ['hub.sqlite.before-0002-user-order', 'hub.sqlite.before-1', 'hub.sqlite.before-2'];
  expect(await openAndClose()).toEqual(kept);
});

test('a database that is new or up to date is not copied', async () => {
  expect(await openAndClose()).toEqual([]);
  expect(await openAndClose()).toEqual([]);
});
