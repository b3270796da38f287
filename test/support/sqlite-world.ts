import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach } from 'vitest';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import type { NewRow } from '../../src/platform/store/tables.ts';
import { memoryFolder } from './memory-folder.ts';

const silent = pino({ level: 'silent' });

/** An empty folder for each test of the file, and databases in it that are closed after the test. */
export interface SqliteWorld {
  readonly directory: string;
  /** `hub.sqlite` in the folder. */
  readonly file: string;
  open(url?: string, log?: typeof silent): Promise<HubDatabase>;
}

export function useSqliteFile(): SqliteWorld {
  const opened: HubDatabase[] = [];
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(memoryFolder(), 'hub-sqlite-'));
  });
  afterEach(async () => {
    for (const database of opened.splice(0)) await database[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    get directory() {
      return directory;
    },
    get file() {
      return join(directory, 'hub.sqlite');
    },
    async open(url = 'sqlite:hub.sqlite', log = silent) {
      const database = await openDatabase(url, { directory, log, lockTimeoutMs: 100 });
      opened.push(database);
      return database;
    },
  };
}

export const userRow = (name: string): NewRow<'users'> => ({
  id: name,
  name,
  admin: 0,
  invited: 0,
  created_at: 1,
  last_activity_at: null,
});

export const addUser = ({ kysely }: HubDatabase, name: string) =>
  kysely.insertInto('users').values(userRow(name)).execute();

export const userNames = async ({ kysely }: HubDatabase) =>
  (await kysely.selectFrom('users').select('name').orderBy('name').execute()).map(
    ({ name }) => name,
  );
