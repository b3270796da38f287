import {
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementSync,
} from 'node:sqlite';
import { createEventLoopYield } from '../concurrency/turns.ts';

const cachedStatementCount = 200;

/** What a statement did and found. */
export interface StatementResult {
  readonly rows: unknown[];
  readonly changes: number | bigint;
  readonly lastInsertRowid: number | bigint;
}

/** What came of one of several statements. */
export type StatementOutcome =
  | { readonly result: StatementResult }
  /** It changed nothing. */
  | { readonly error: unknown };

export interface Statement {
  readonly sql: string;
  readonly parameters: readonly SQLInputValue[];
  /**
   * In place of `parameters`, for it to be run once with each of these: all or none. Its result has the numbers of
   * those that changed something as rows. What inserts many rows at once instead is made slow by a transaction: SQLite
   * keeps a copy of each page then, to undo that one statement.
   */
  readonly each?: readonly (readonly SQLInputValue[])[];
  /**
   * Another one that is run after it: both or neither. The result is that of the first. After `each`, its first
   * parameter is how many changed something, which is put before those given.
   */
  readonly following?: Omit<Statement, 'following' | 'each'>;
}

/** One connection to an SQLite database, wherever it runs. */
export interface SqliteEngine {
  /** Whether a transaction is open, as of the last answer. */
  readonly isInTransaction: boolean;
  /** Runs one statement, and commits its transaction then if it is the last. Rejects with what `node:sqlite` throws, its `code` and `errcode` kept. */
  run(
    sql: string,
    parameters: readonly SQLInputValue[],
    isLast?: boolean,
  ): Promise<StatementResult>;
  /**
   * Runs statements in one transaction of their own, so that they wait for the disk once. One that fails leaves the
   * others alone; rejects when nothing of them is changed, such as by a commit that fails.
   */
  runTogether(statements: readonly Statement[]): Promise<readonly StatementOutcome[]>;
  close(): Promise<void>;
}

/**
 * An engine in this thread: right for what never waits for a disk to write, a database in memory
 * or one that is only read. It owns the database from now on.
 */
export function createDirectEngine(database: DatabaseSync): SqliteEngine {
  const statements = new StatementRunner(database);
  const yieldToEventLoop = createEventLoopYield();
  return {
    get isInTransaction() {
      return database.isTransaction;
    },
    async run(sql, parameters, isLast = false) {
      await yieldToEventLoop();
      return isLast ? statements.runLast(sql, parameters) : statements.run(sql, parameters);
    },
    async runTogether(together) {
      await yieldToEventLoop();
      return statements.runTogether(together);
    },
    async close() {
      if (database.isOpen) database.close();
    },
  };
}

/**
 * Opens an SQLite file with the pragmas the hub relies on: nothing acknowledged is lost in a power cut.
 * What only reads needs another one to have opened it for writing.
 */
export function openDatabaseFile({
  file,
  lockTimeoutMs,
  isReadOnly = false,
}: {
  readonly file: string;
  /** How long a statement waits for the lock of another process, which stops the thread that it runs in. */
  readonly lockTimeoutMs: number;
  readonly isReadOnly?: boolean;
}): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: lockTimeoutMs, readOnly: isReadOnly });
  try {
    if (!isReadOnly) {
      database.exec('pragma journal_mode = wal');
      database.exec('pragma synchronous = full');
      database.exec('pragma foreign_keys = on');
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Reads a number that grows with each commit over another connection, a thousand times as fast as most queries. For a
 * database over which this connection writes nothing.
 */
export function createVersionReader(database: DatabaseSync): () => number | undefined {
  const statement = database.prepare('pragma data_version');
  statement.setReturnArrays(true);
  return () => {
    if (!database.isOpen) return undefined;
    try {
      const [version] = statement.get() as unknown as number[];
      return version;
    } catch {
      // Such as a database that is locked; the query that is asked instead says so.
      return undefined;
    }
  };
}

/** Runs statements and keeps those used last prepared. */
export class StatementRunner {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, PreparedStatement>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  run(sql: string, parameters: readonly SQLInputValue[]): StatementResult {
    const prepared = this.#prepare(sql);
    const { statement, columns } = prepared;
    if (columns.length === 0) return { rows: [], ...statement.run(...parameters) };
    const found = statement.all(...parameters) as unknown as SQLOutputValue[][];
    // Another connection may have added a column that `*` stands for.
    if (found[0] !== undefined && found[0].length !== columns.length) {
      prepared.columns = columnsOf(statement);
    }
    const rows = found.map((values) => toRow(prepared.columns, values));
    return { rows, changes: 0, lastInsertRowid: 0 };
  }

  /** Runs a statement and commits. */
  runLast(sql: string, parameters: readonly SQLInputValue[]): StatementResult {
    const result = this.run(sql, parameters);
    this.run('commit', []);
    return result;
  }

  runTogether(statements: readonly Statement[]): StatementOutcome[] {
    this.run('begin immediate', []);
    try {
      const isAlone = statements.length === 1;
      const outcomes = statements.map((statement) =>
        isAlone ? { result: this.#runBoth(statement) } : this.#runWithin(statement),
      );
      this.run('commit', []);
      return outcomes;
    } catch (error) {
      if (this.#database.isTransaction) this.run('rollback', []);
      throw error;
    }
  }

  #runBoth({ sql, parameters, each, following }: Statement): StatementResult {
    if (each !== undefined) return this.#runEach(sql, each, following);
    const result = this.run(sql, parameters);
    if (following !== undefined) this.run(following.sql, following.parameters);
    return result;
  }

  #runEach(
    sql: string,
    each: NonNullable<Statement['each']>,
    following: Statement['following'],
  ): StatementResult {
    const rows = [...each.keys()].filter((index) => this.run(sql, each[index] ?? []).changes !== 0);
    const changes = rows.length;
    if (following !== undefined) this.run(following.sql, [changes, ...following.parameters]);
    return { rows, changes, lastInsertRowid: 0 };
  }

  #runWithin(statement: Statement): StatementOutcome {
    const { sql, parameters, each, following } = statement;
    const isSeveral = each !== undefined || following !== undefined;
    try {
      if (!isSeveral) return { result: this.run(sql, parameters) };
      this.run('savepoint both', []);
      const result = this.#runBoth(statement);
      this.run('release both', []);
      return { result };
    } catch (error) {
      if (isSeveral && this.#database.isTransaction) {
        this.run('rollback to both', []);
        this.run('release both', []);
      }
      // SQLite has rolled back the whole, as it may when the disk is full; what follows would be on its own.
      if (!this.#database.isTransaction) throw error;
      return { error };
    }
  }

  #prepare(sql: string): PreparedStatement {
    const cached = this.#prepared.get(sql);
    if (cached !== undefined) {
      // Moves it to the end, so that the first key is the one unused for longest.
      this.#prepared.delete(sql);
      this.#prepared.set(sql, cached);
      return cached;
    }
    const statement = this.#database.prepare(sql);
    // As objects, rows would have the slow kind of properties: to make and read one takes three times as long.
    statement.setReturnArrays(true);
    const prepared = { statement, columns: columnsOf(statement) };
    this.#prepared.set(sql, prepared);
    if (this.#prepared.size > cachedStatementCount) {
      const [oldest] = this.#prepared.keys();
      if (oldest !== undefined) this.#prepared.delete(oldest);
    }
    return prepared;
  }
}

interface PreparedStatement {
  readonly statement: StatementSync;
  /** Names of what it finds; none where it only changes something. */
  columns: readonly string[];
}

function columnsOf(statement: StatementSync): string[] {
  return statement.columns().map(({ name }) => name);
}

function toRow(
  columns: readonly string[],
  values: readonly SQLOutputValue[],
): Record<string, SQLOutputValue> {
  const row: Record<string, SQLOutputValue> = {};
  for (let index = 0; index < columns.length; index += 1) {
    row[columns[index] as string] = values[index] as SQLOutputValue;
  }
  return row;
}
