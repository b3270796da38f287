import type { SQLInputValue } from 'node:sqlite';
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
import type { SqliteEngine, StatementResult } from './sqlite-engine.ts';
import { storageFailureOf } from './storage-error.ts';

const firstRetryMs = 5;
const longestRetryMs = 50;

export interface NodeSqliteDialectOptions {
  readonly engine: SqliteEngine;
  /** How long a statement waits for another process's lock, without blocking any thread. */
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
  readonly #engine: SqliteEngine;
  readonly #connection: NodeSqliteConnection;
  readonly #queue: ConnectionQueue;

  constructor({ engine, lockTimeoutMs, queueTimeoutMs }: NodeSqliteDialectOptions) {
    this.#engine = engine;
    this.#connection = new NodeSqliteConnection(engine, lockTimeoutMs);
    this.#queue = new ConnectionQueue(queueTimeoutMs);
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.#queue.enter();
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
    if (this.#engine.isInTransaction) await this.#connection.command('rollback');
  }

  async destroy(): Promise<void> {
    await this.#queue.close();
    await this.#engine.close();
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #engine: SqliteEngine;
  readonly #lockTimeoutMs: number;
  #isLocked = false;

  constructor(engine: SqliteEngine, lockTimeoutMs: number) {
    this.#engine = engine;
    this.#lockTimeoutMs = lockTimeoutMs;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changes, lastInsertRowid } = await this.#untilUnlocked(sql, parameters);
    return {
      rows: rows as R[],
      insertId: BigInt(lastInsertRowid),
      numAffectedRows: BigInt(changes),
    };
  }

  /** Nothing to gain from a stream here: SQLite's rows come from the page cache, in one answer. */
  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query);
  }

  async command(sql: string): Promise<void> {
    await this.#untilUnlocked(sql, []);
  }

  /**
   * Repeats a statement that another process's lock stopped, up to the limit. Once the limit has been
   * reached, later statements try only once until one succeeds: otherwise everything queued behind
   * would wait the whole time in turn.
   */
  async #untilUnlocked(sql: string, parameters: readonly unknown[]): Promise<StatementResult> {
    const deadline = performance.now() + (this.#isLocked ? 0 : this.#lockTimeoutMs);
    for (let waitMs = firstRetryMs; ; waitMs = Math.min(waitMs * 2, longestRetryMs)) {
      try {
        const result = await this.#engine.run(sql, parameters as readonly SQLInputValue[]);
        this.#isLocked = false;
        return result;
      } catch (error) {
        if (storageFailureOf(error) !== 'locked' || this.#engine.isInTransaction) throw error;
        if (performance.now() >= deadline) {
          this.#isLocked = true;
          throw error;
        }
        await delay(waitMs);
      }
    }
  }
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
