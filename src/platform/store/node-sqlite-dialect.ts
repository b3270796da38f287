import type { SQLInputValue } from 'node:sqlite';
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
import { type Text, text } from '../texts/text.ts';
import type { SqliteEngine, Statement, StatementResult } from './sqlite-engine.ts';
import { storageFailureOf } from './storage-error.ts';

/** Kinds of statements that may share a transaction with others; a pragma, for example, may not. */
const changes = new Set(['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode']);
/** Statements that are committed together at most: so many run in some milliseconds. */
const maxBatchSize = 100;

export interface NodeSqliteDialectOptions {
  readonly writer: SqliteEngine;
  /** For queries outside transactions; without one, the writer answers them too. */
  readonly reader?: SqliteEngine;
  /** How long a statement waits for the writer. */
  readonly queueTimeoutMs: number;
  /** Why nothing may be written at this moment; reading goes on. */
  readonly problem?: () => Text | undefined;
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
  readonly #writer: SqliteEngine;
  readonly #reader: SqliteEngine | undefined;
  readonly #queue: WriterQueue;
  readonly #requireWritable: () => void;

  constructor(options: NodeSqliteDialectOptions) {
    const { writer, reader, queueTimeoutMs } = options;
    this.#writer = writer;
    this.#reader = reader;
    this.#requireWritable = () => {
      const problem = options.problem?.();
      if (problem !== undefined) throw unwritable(problem);
    };
    this.#queue = new WriterQueue(this.#writer, queueTimeoutMs, this.#requireWritable);
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

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await (connection as NodeSqliteConnection).commit();
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
  readonly #writer: SqliteEngine;
  readonly #reader: SqliteEngine | undefined;
  readonly #queue: WriterQueue;
  readonly #requireWritable: () => void;
  #holdsWriter = false;
  #isCommitted = false;

  constructor(parts: {
    readonly writer: SqliteEngine;
    readonly reader: SqliteEngine | undefined;
    readonly queue: WriterQueue;
    readonly requireWritable: () => void;
  }) {
    this.#writer = parts.writer;
    this.#reader = parts.reader;
    this.#queue = parts.queue;
    this.#requireWritable = parts.requireWritable;
  }

  async executeQuery<R>({
    sql,
    parameters,
    query,
    each,
    following,
    isLast = false,
  }: CompiledQuery &
    Pick<Statement, 'each' | 'following'> & {
      /** Commits the transaction with it, in one way to the writer and back. */
      readonly isLast?: boolean;
    }): Promise<QueryResult<R>> {
    const values = parameters as readonly SQLInputValue[];
    if (this.#holdsWriter && isLast) return this.#runLast(sql, values);
    if (this.#holdsWriter) return toQueryResult(await this.#writer.run(sql, values));
    if (this.#reader !== undefined && query.kind === 'SelectQueryNode') {
      try {
        return toQueryResult(await this.#reader.run(sql, values));
      } catch (error) {
        // The thread of the writer can wait for the lock of another process, this one must not.
        if (storageFailureOf(error) !== 'locked') throw error;
      }
    } else this.#requireWritable();
    if (changes.has(query.kind)) {
      const statement = {
        sql,
        parameters: values,
        ...(each !== undefined && { each }),
        ...(following !== undefined && { following }),
      };
      return toQueryResult(await this.#queue.run(statement));
    }
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

  async #runLast<R>(sql: string, values: readonly SQLInputValue[]): Promise<QueryResult<R>> {
    this.#requireWritable();
    const result = await this.#writer.run(sql, values, true);
    this.#isCommitted = true;
    return toQueryResult(result);
  }

  async commit(): Promise<void> {
    if (this.#isCommitted) return;
    this.#requireWritable();
    await this.#writer.run('commit', []);
  }

  release(): void {
    if (!this.#holdsWriter) return;
    this.#holdsWriter = false;
    this.#queue.leave();
  }
}

function unwritable(problem: Text): HubError {
  return new HubError('storage_unavailable', problem, {
    hint: text`Tell the operator of this hub.`,
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

interface Waiting {
  /** What is to run; undefined for a transaction, which takes the writer for itself. */
  readonly statement: Statement | undefined;
  readonly timer: NodeJS.Timeout;
  resolve(result: StatementResult): void;
  reject(error: unknown): void;
}

/**
 * Lets one at a time use the writer, first come first served, and no one wait for ever. Statements that wait when the
 * turn comes to one of them are committed together: with a slow disk or a busy processor a hundred of them take
 * about as long as one.
 */
class WriterQueue {
  readonly #writer: SqliteEngine;
  readonly #timeoutMs: number;
  readonly #requireWritable: () => void;
  readonly #waiting = new Set<Waiting>();
  #isBusy = false;
  #isClosed = false;
  #onIdle: (() => void) | undefined;

  constructor(writer: SqliteEngine, timeoutMs: number, requireWritable: () => void) {
    this.#writer = writer;
    this.#timeoutMs = timeoutMs;
    this.#requireWritable = requireWritable;
  }

  /** Takes the writer until `leave`. */
  async enter(): Promise<void> {
    this.#requireOpen();
    if (this.#isBusy) await this.#wait(undefined);
    this.#isBusy = true;
  }

  /** Runs a statement on its own, or with others that wait. */
  async run(statement: Statement): Promise<StatementResult> {
    this.#requireOpen();
    if (this.#isBusy) return this.#wait(statement);
    this.#isBusy = true;
    try {
      if (statement.each === undefined && statement.following === undefined) {
        return await this.#writer.run(statement.sql, statement.parameters);
      }
      const [outcome] = await this.#writer.runTogether([statement]);
      if (outcome === undefined || 'error' in outcome) throw outcome?.error;
      return outcome.result;
    } finally {
      this.leave();
    }
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#isBusy = false;
      this.#onIdle?.();
      return;
    }
    if (next.statement === undefined) this.#take([next])[0]?.resolve(noResult);
    else void this.#runNext();
  }

  async #runNext(): Promise<void> {
    const statements = [...this.#waiting].filter(({ statement }) => statement !== undefined);
    const taken = this.#take(statements.slice(0, maxBatchSize));
    try {
      // Their turn came later than the question.
      this.#requireWritable();
      const outcomes = await this.#writer.runTogether(
        taken.flatMap(({ statement }) => statement ?? []),
      );
      taken.forEach(({ resolve, reject }, index) => {
        const outcome = outcomes[index];
        if (outcome === undefined || 'error' in outcome) reject(outcome?.error);
        else resolve(outcome.result);
      });
    } catch (error) {
      for (const { reject } of taken) reject(error);
    } finally {
      this.leave();
    }
  }

  #take(those: readonly Waiting[]): readonly Waiting[] {
    for (const each of those) {
      clearTimeout(each.timer);
      this.#waiting.delete(each);
    }
    return those;
  }

  #wait(statement: Statement | undefined): Promise<StatementResult> {
    const { promise, resolve, reject } = Promise.withResolvers<StatementResult>();
    const timer = setTimeout(() => {
      this.#waiting.delete(entry);
      reject(
        new HubError('storage_unavailable', text`The database is busy.`, {
          retryAfterSeconds: 5,
          cause: new Error('a transaction held the connection for too long'),
        }),
      );
    }, this.#timeoutMs);
    const entry: Waiting = { statement, timer, resolve, reject };
    this.#waiting.add(entry);
    return promise;
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new HubError('storage_unavailable', text`The database is closed.`);
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

const noResult: StatementResult = { rows: [], changes: 0, lastInsertRowid: 0 };
