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
  readonly writer: SqliteEngine;
  /** For queries outside transactions; without one, the writer answers them too. */
  readonly reader?: SqliteEngine;
  /** How long a statement waits for another process's lock, without blocking any thread. */
  readonly lockTimeoutMs: number;
  /** How long a statement waits for the writer. */
  readonly queueTimeoutMs: number;
  /** Why nothing may be written at this moment; reading goes on. */
  readonly problem?: () => string | undefined;
}

/**
 * The Kysely dialect for one database of Node's own SQLite: one connection that writes, and one
 * that reads what has been committed.
 */
export function createNodeSqliteDialect(options: NodeSqliteDialectOptions): Dialect {
  return {
    createDriver: () => new NodeSqliteDriver(options),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new QueuedAdapter(),
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
  };
}

/** Says that the driver itself queues for its writer, and with a limit, unlike Kysely. */
class QueuedAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class NodeSqliteDriver implements Driver {
  readonly #writer: PatientEngine;
  readonly #reader: PatientEngine | undefined;
  readonly #queue: WriterQueue;
  readonly #requireWritable: () => void;

  constructor(options: NodeSqliteDialectOptions) {
    const { writer, reader, lockTimeoutMs, queueTimeoutMs } = options;
    this.#writer = new PatientEngine(writer, lockTimeoutMs);
    this.#reader = reader && new PatientEngine(reader, lockTimeoutMs);
    this.#queue = new WriterQueue(queueTimeoutMs);
    this.#requireWritable = () => {
      const problem = options.problem?.();
      if (problem !== undefined) throw unwritable(problem);
    };
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<NodeSqliteConnection> {
    return new NodeSqliteConnection({
      writer: this.#writer,
      reader: this.#reader,
      queue: this.#queue,
      requireWritable: this.#requireWritable,
    });
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    (connection as NodeSqliteConnection).release();
  }

  async beginTransaction(connection: DatabaseConnection, { accessMode }: TransactionSettings) {
    await (connection as NodeSqliteConnection).begin(accessMode);
  }

  async commitTransaction(): Promise<void> {
    this.#requireWritable();
    await this.#writer.run('commit', []);
  }

  async rollbackTransaction(): Promise<void> {
    // SQLite has already rolled back after a full disk or an I/O error.
    if (this.#writer.isInTransaction) await this.#writer.run('rollback', []);
  }

  async destroy(): Promise<void> {
    await this.#queue.close();
    await this.#reader?.close();
    await this.#writer.close();
  }
}

/** What one query or one transaction runs on: the writer in its turn, or the reader at once. */
class NodeSqliteConnection implements DatabaseConnection {
  readonly #writer: PatientEngine;
  readonly #reader: PatientEngine | undefined;
  readonly #queue: WriterQueue;
  readonly #requireWritable: () => void;
  #holdsWriter = false;

  constructor(parts: {
    readonly writer: PatientEngine;
    readonly reader: PatientEngine | undefined;
    readonly queue: WriterQueue;
    readonly requireWritable: () => void;
  }) {
    this.#writer = parts.writer;
    this.#reader = parts.reader;
    this.#queue = parts.queue;
    this.#requireWritable = parts.requireWritable;
  }

  async executeQuery<R>({ sql, parameters, query }: CompiledQuery): Promise<QueryResult<R>> {
    const values = parameters as readonly SQLInputValue[];
    if (this.#holdsWriter) return toQueryResult(await this.#writer.run(sql, values));
    if (this.#reader !== undefined && query.kind === 'SelectQueryNode') {
      return toQueryResult(await this.#reader.run(sql, values));
    }
    this.#requireWritable();
    await this.#queue.enter();
    try {
      return toQueryResult(await this.#writer.run(sql, values));
    } finally {
      this.#queue.leave();
    }
  }

  /** Nothing to gain from a stream here: SQLite's rows come from the page cache, in one answer. */
  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query);
  }

  /** Begins a transaction, which has the writer to itself until the connection is released. */
  async begin(accessMode: TransactionSettings['accessMode']): Promise<void> {
    if (accessMode !== 'read only') this.#requireWritable();
    await this.#queue.enter();
    this.#holdsWriter = true;
    // A deferred transaction that reads first and writes later fails when another process wrote in
    // between, and no waiting helps; taking the write lock at once makes it wait instead.
    await this.#writer.run(accessMode === 'read only' ? 'begin' : 'begin immediate', []);
  }

  release(): void {
    if (!this.#holdsWriter) return;
    this.#holdsWriter = false;
    this.#queue.leave();
  }
}

function unwritable(problem: string): HubError {
  return new HubError('storage_unavailable', problem, {
    hint: 'Tell the operator of this hub.',
    retryAfterSeconds: 60,
  });
}

function toQueryResult<R>(result: StatementResult): QueryResult<R> {
  return {
    rows: result.rows as R[],
    insertId: BigInt(result.lastInsertRowid),
    numAffectedRows: BigInt(result.changes),
  };
}

/** An engine whose statements wait for the lock of another process. */
class PatientEngine {
  readonly #engine: SqliteEngine;
  readonly #lockTimeoutMs: number;
  #isLocked = false;

  constructor(engine: SqliteEngine, lockTimeoutMs: number) {
    this.#engine = engine;
    this.#lockTimeoutMs = lockTimeoutMs;
  }

  get isInTransaction(): boolean {
    return this.#engine.isInTransaction;
  }

  /**
   * Repeats a statement that another process's lock stopped, up to the limit. Once the limit has been
   * reached, later statements try only once until one succeeds: otherwise everything queued behind
   * would wait the whole time in turn.
   */
  async run(sql: string, parameters: readonly SQLInputValue[]): Promise<StatementResult> {
    const deadline = performance.now() + (this.#isLocked ? 0 : this.#lockTimeoutMs);
    for (let waitMs = firstRetryMs; ; waitMs = Math.min(waitMs * 2, longestRetryMs)) {
      try {
        const result = await this.#engine.run(sql, parameters);
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

  close(): Promise<void> {
    return this.#engine.close();
  }
}

/** Lets one at a time use the writer, first come first served, and no one wait for ever. */
class WriterQueue {
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
