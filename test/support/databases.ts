import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import type { HubDatabase } from '../../src/store/database.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { hasPostgres, type PostgresCluster, startPostgres } from './postgres.ts';

const log = pino({ level: 'silent' });

/**
 * Runs the same tests on SQLite in memory and on a real PostgreSQL. `open` gives an empty database,
 * closed at the end of the test.
 */
export function describeEachDatabase(
  name: string,
  declareTests: (open: () => Promise<HubDatabase>, dialect: 'sqlite' | 'postgres') => void,
): void {
  describe(`${name} (SQLite)`, () => {
    const opened = closeAfterEach();
    declareTests(async () => {
      const database = await openDatabase('sqlite::memory:', { directory: '.', log });
      opened.push(database);
      return database;
    }, 'sqlite');
  });

  describe.skipIf(!hasPostgres())(`${name} (PostgreSQL)`, () => {
    const cluster = usePostgres();
    const opened = closeAfterEach();
    declareTests(async () => {
      const url = await cluster().createDatabase();
      const database = await openDatabase(url, { directory: '.', log });
      opened.push(database);
      return database;
    }, 'postgres');
  });
}

/** Starts a PostgreSQL for the tests of the surrounding `describe` and ends it after them. */
export function usePostgres(): () => PostgresCluster {
  let cluster: PostgresCluster | undefined;
  beforeAll(async () => {
    cluster = await startPostgres();
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });
  return () => {
    if (cluster === undefined) throw new Error('PostgreSQL has not been started');
    return cluster;
  };
}

function closeAfterEach(): HubDatabase[] {
  const opened: HubDatabase[] = [];
  afterEach(async () => {
    for (const database of opened.splice(0)) await database[Symbol.asyncDispose]();
  });
  return opened;
}
