import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type TransactionSettings,
} from 'kysely';
import { HubError } from '../errors.ts';
import { storageFailureOf } from './storage-error.ts';
import { Turns } from './turns.ts';

const cachedStatementCount = 200;
const firstRetryMs = 5;
const longestRetryMs = 50;

export interface NodeSqliteDialectOptions {
  readonly database: DatabaseSync;
  /** How long a statement waits for another process's lock, without blocking the event loop. */
  readonly lockTimeoutMs: number;
  /** How long a query waits for the one connection. */
  readonly queueTimeoutMs: number;
}

/** Creates the Kysely dialect for one connection of Node's own SQLite. */
export function createNodeSqliteDialect(options: NodeSqliteDialectOptions): Dialect {
  return {
    createDriver: () => new NodeSqliteDriver(options),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new QueuedAdapter(),
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
  };
}

/** Says that the driver itself queues for its one connection, and with a limit, unlike Kysely. */
class QueuedAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class NodeSqliteDriver implements Driver {
  readonly #database: DatabaseSync;
  readonly #connection: NodeSqliteConnection;
  readonly #queue: ConnectionQueue;
  readonly #turns = new Turns();

  constructor({ database, lockTimeoutMs, queueTimeoutMs }: NodeSqliteDialectOptions) {
    this.#database = database;
    this.#connection = new NodeSqliteConnection(database, lockTimeoutMs);
    this.#queue = new ConnectionQueue(queueTimeoutMs);
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.#queue.enter();
    await this.#turns.take();
    return this.#connection;
  }

  async releaseConnection(): Promise<void> {
    this.#queue.leave();
  }

  async beginTransaction(_connection: DatabaseConnection, settings: TransactionSettings) {
    // A deferred transaction that reads first and writes later fails when another process wrote in
    // between, and no waiting helps; taking the write lock at once makes it wait instead.
    await this.#connection.command(
      settings.accessMode === 'read only' ? 'begin' : 'begin immediate',
    );
  }

  async commitTransaction(): Promise<void> {
    await this.#connection.command('commit');
  }

  async rollbackTransaction(): Promise<void> {
    // SQLite has already rolled back after a full disk or an I/O error.
    if (this.#database.isTransaction) await this.#connection.command('rollback');
  }

  async destroy(): Promise<void> {
    await this.#queue.close();
    this.#connection.forgetStatements();
    if (this.#database.isOpen) this.#database.close();
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #lockTimeoutMs: number;
  readonly #statements = new Map<string, PreparedStatement>();
  #isLocked = false;

  constructor(database: DatabaseSync, lockTimeoutMs: number) {
    this.#database = database;
    this.#lockTimeoutMs = lockTimeoutMs;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return await this.#untilUnlocked(() => {
      const { statement, isReader } = this.#prepare(sql);
      const values = parameters as SQLInputValue[];
      if (isReader) return { rows: statement.all(...values) as R[] };
      const { changes, lastInsertRowid } = statement.run(...values);
      return { rows: [], insertId: BigInt(lastInsertRowid), numAffectedRows: BigInt(changes) };
    });
  }

  async *streamQuery<R>({ sql, parameters }: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    // Not a cached statement: running that one again would reset this iteration.
    const statement = this.#database.prepare(sql);
    for (const row of statement.iterate(...(parameters as SQLInputValue[]))) {
      yield { rows: [row as R] };
    }
  }

  async command(sql: string): Promise<void> {
    await this.#untilUnlocked(() => this.#prepare(sql).statement.run());
  }

  forgetStatements(): void {
    this.#statements.clear();
  }

  /**
   * Repeats an action that another process's lock stopped, up to the limit. Once the limit has been
   * reached, later actions try only once until one succeeds: otherwise everything queued behind
   * would wait the whole time in turn.
   */
  async #untilUnlocked<T>(action: () => T): Promise<T> {
    const deadline = performance.now() + (this.#isLocked ? 0 : this.#lockTimeoutMs);
    for (let waitMs = firstRetryMs; ; waitMs = Math.min(waitMs * 2, longestRetryMs)) {
      try {
        const result = action();
        this.#isLocked = false;
        return result;
      } catch (error) {
        if (storageFailureOf(error) !== 'locked' || this.#database.isTransaction) throw error;
        if (performance.now() >= deadline) {
          this.#isLocked = true;
          throw error;
        }
        await delay(waitMs);
      }
    }
  }

  #prepare(sql: string): PreparedStatement {
    const cached = this.#statements.get(sql);
    if (cached !== undefined) {
      // Moves it to the end, so that the first key is the one unused for longest.
      this.#statements.delete(sql);
      this.#statements.set(sql, cached);
      return cached;
    }
    const statement = this.#database.prepare(sql);
    const prepared = { statement, isReader: statement.columns().length > 0 };
    this.#statements.set(sql, prepared);
    if (this.#statements.size > cachedStatementCount) {
      const [oldest] = this.#statements.keys();
      if (oldest !== undefined) this.#statements.delete(oldest);
    }
    return prepared;
  }
}

interface PreparedStatement {
  readonly statement: StatementSync;
  readonly isReader: boolean;
}

/** Lets one at a time use the connection, first come first served, and nobody wait for ever. */
class ConnectionQueue {
  readonly #timeoutMs: number;
  readonly #waiting = new Set<() => void>();
  #isBusy = false;
  #isClosed = false;
  #onIdle: (() => void) | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  async enter(): Promise<void> {
    if (this.#isClosed) throw new HubError('storage_unavailable', 'The database is closed.');
    if (!this.#isBusy) {
      this.#isBusy = true;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = setTimeout(() => {
      this.#waiting.delete(resolve);
      reject(
        new HubError('storage_unavailable', 'The database is busy.', {
          retryAfterSeconds: 5,
          cause: new Error('a transaction held the connection for too long'),
        }),
      );
    }, this.#timeoutMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#isBusy = false;
      this.#onIdle?.();
      return;
    }
    this.#waiting.delete(next);
    next();
  }

  /** Refuses newcomers and waits for those already there. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (!this.#isBusy) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    await promise;
  }
}
