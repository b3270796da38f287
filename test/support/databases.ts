import { sql } from 'kysely';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, inject } from 'vitest';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import {
  createDatabase,
  createTemplate,
  emptyDatabase,
  hasPostgres,
  type PostgresCluster,
  type PostgresLogin,
  type PostgresOptions,
  readSchema,
  startPostgres,
} from './postgres.ts';
import { sharedPostgres } from './shared-postgres.ts';

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
    const used: ReusableDatabase[] = [];
    const free: ReusableDatabase[] = [];
    afterEach(async () => {
      for (const database of used.splice(0)) {
        if (await database.makeReusable()) free.push(database);
      }
    });
    afterAll(async () => {
      for (const { database } of free) await database[Symbol.asyncDispose]();
    });
    declareTests(async () => {
      const next = free.pop() ?? (await openReusable());
      used.push(next);
      return next.database;
    }, 'postgres');
  });
}

/** A database that stays open from test to test, since to connect takes far longer than to empty it. */
interface ReusableDatabase {
  readonly database: HubDatabase;
  /** Makes it what it was when it was opened; false, and closed, where the test has left it otherwise. */
  makeReusable(): Promise<boolean>;
}

async function openReusable(): Promise<ReusableDatabase> {
  const url = await createHubDatabase(await sharedPostgres(inject('postgresSocket')));
  const database = await openDatabase(url, { directory: '.', log });
  const schema = await readSchema(database);
  const { announceChange, onChange } = database;
  const stops: (() => void)[] = [];
  database.onChange = (...listener) => {
    const stop = onChange(...listener);
    stops.push(stop);
    return stop;
  };
  return {
    database,
    async makeReusable() {
      for (const stop of stops.splice(0)) stop();
      database.announceChange = announceChange;
      try {
        if ((await readSchema(database)) === schema) {
          await emptyDatabase(database);
          return true;
        }
      } catch {
        // The test has closed it, or left it without tables.
      }
      await database[Symbol.asyncDispose]();
      return false;
    },
  };
}

/** Where databases can be made; tests may not stop it, since other files use it at the same time. */
export interface SharedPostgres extends PostgresLogin {
  /** Makes a database that has the tables of the hub and no rows, and returns its URL. */
  createDatabase(): Promise<string>;
  /** Makes a database without tables and returns its URL. */
  createEmptyDatabase(): Promise<string>;
}

const templates = new Map<number, Promise<string>>();

/** A copy of one whose tables are made once, which takes a fifth of the time to make them. */
async function createHubDatabase(login: PostgresLogin): Promise<string> {
  const template =
    templates.get(login.port) ??
    createTemplate(login, async (url) => {
      await using _ = await openDatabase(url, { directory: '.', log });
    });
  templates.set(login.port, template);
  return createDatabase(login, await template);
}

/** The PostgreSQL of all test files, for the tests of the surrounding `describe`. */
export function usePostgres(): () => SharedPostgres {
  let shared: SharedPostgres | undefined;
  beforeAll(async () => {
    const login = await sharedPostgres(inject('postgresSocket'));
    shared = {
      ...login,
      createDatabase: () => createHubDatabase(login),
      createEmptyDatabase: () => createDatabase(login),
    };
  });
  return () => started(shared);
}

/** Starts a PostgreSQL for the tests of the surrounding `describe` and ends it after them. */
export function useOwnPostgres(options: PostgresOptions = {}): () => PostgresCluster {
  let cluster: PostgresCluster | undefined;
  beforeAll(async () => {
    cluster = await startPostgres(options);
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });
  return () => started(cluster);
}

function started<Cluster>(cluster: Cluster | undefined): Cluster {
  if (cluster === undefined) throw new Error('PostgreSQL has not been started');
  return cluster;
}

/**
 * The subjects that stores announce from now on, once each. Listeners may hear of a change again when
 * PostgreSQL tells of it.
 */
export function recordAnnouncements(database: HubDatabase): unknown[] {
  const subjects: unknown[] = [];
  const announce = database.announceChange;
  database.announceChange = (subject) => {
    subjects.push(subject);
    announce(subject);
  };
  return subjects;
}

function closeAfterEach(): HubDatabase[] {
  const opened: HubDatabase[] = [];
  afterEach(async () => {
    for (const database of opened.splice(0)) await database[Symbol.asyncDispose]();
  });
  return opened;
}

/** Whether a query waits for the end of a transaction; on SQLite every transaction waits for the one before it. */
export async function isQueryWaiting({ dialect, kysely }: HubDatabase): Promise<boolean> {
  if (dialect === 'sqlite') return true;
  const { rows } = await sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(kysely);
  return rows.length > 0;
}
