import { setTimeout as sleep } from 'node:timers/promises';
import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from 'kysely';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';
import { isDeadlock, toStorageError } from './storage-error.ts';

/** A dialect whose failures are HubErrors. */
export interface GuardedDialect {
  readonly dialect: Dialect;
  /** Waits for what gets an answer and closes. A query after that is a `storage_unavailable`. */
  close(): Promise<void>;
}

/**
 * Wraps a dialect so that every failure of the storage leaves it as a HubError. This is the one
 * place where that happens: stores need not care.
 */
export function guardDialect(
  dialect: Dialect,
  answers: AnswerWatch = createAnswerWatch(undefined),
): GuardedDialect {
  const driver = dialect.createDriver();
  let closing: Promise<void> | undefined;
  // Kysely's own destroy() would make later queries fail with an error that looks like a bug.
  const close = () => {
    closing ??= answers.wait(driver.destroy()).catch((error: unknown) => {
      if (answers.givenUp === undefined) throw error;
    });
    return closing;
  };
  return {
    dialect: {
      createDriver: () =>
        guardDriver(driver, { answers, isClosed: () => closing !== undefined, close }),
      createQueryCompiler: () => dialect.createQueryCompiler(),
      createAdapter: () => dialect.createAdapter(),
      createIntrospector: (kysely) => dialect.createIntrospector(kysely),
    },
    close,
  };
}

interface Guard {
  readonly answers: AnswerWatch;
  isClosed(): boolean;
  close(): Promise<void>;
}

function guardDriver(driver: Driver, { answers, isClosed, close }: Guard): Driver {
  const translated = <T>(answer: Promise<T>) => translate(answers.wait(answer));
  const guarded = new WeakMap<DatabaseConnection, GuardedConnection>();
  const innerOf = (connection: DatabaseConnection) => (connection as GuardedConnection).inner;

  return {
    init: (options) => translated(driver.init(options)),
    async acquireConnection(options) {
      if (isClosed()) throw new HubError('storage_unavailable', text`The database is closed.`);
      if (answers.givenUp !== undefined) throw answers.givenUp;
      const inner = await translated(driver.acquireConnection(options));
      const connection = guarded.get(inner) ?? new GuardedConnection(inner, answers);
      guarded.set(inner, connection);
      return connection;
    },
    async beginTransaction(connection, settings) {
      (connection as GuardedConnection).isInTransaction = true;
      await translated(driver.beginTransaction(innerOf(connection), settings));
    },
    commitTransaction: (connection) => translated(driver.commitTransaction(innerOf(connection))),
    async rollbackTransaction(connection) {
      try {
        await answers.wait(driver.rollbackTransaction(innerOf(connection)));
      } catch {
        // The server ends the transaction of a lost connection, and the driver discards the
        // connection. Throwing here would hide the error that made the rollback necessary.
      }
    },
    releaseConnection(connection, options) {
      (connection as GuardedConnection).isInTransaction = false;
      return driver.releaseConnection(innerOf(connection), options);
    },
    destroy: close,
  };
}

class GuardedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  isInTransaction = false;
  readonly #answers: AnswerWatch;

  constructor(inner: DatabaseConnection, answers: AnswerWatch) {
    this.inner = inner;
    this.#answers = answers;
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const execute = () => translate(this.#answers.wait(this.inner.executeQuery<R>(query)));
    // Of a transaction all is undone: its caller begins it again.
    return this.isInTransaction ? execute() : retryAfterDeadlock(execute);
  }

  async *streamQuery<R>(query: CompiledQuery, chunkSize: number) {
    try {
      yield* this.inner.streamQuery<R>(query, chunkSize);
    } catch (error) {
      throw toStorageError(error);
    }
  }
}

async function translate<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw toStorageError(error);
  }
}

/** How long a statement waits for its answer once the hub is about to stop. */
const lastPatienceMs = 3_000;
const checkIntervalMs = 100;

/** Waits for the answers of a database, but when the hub stops, not for one that gives none. */
export interface AnswerWatch {
  /**
   * Settles as the answer does, or rejects with `storage_unavailable` as soon as the database is given
   * up.
   */
  wait<T>(answer: Promise<T>): Promise<T>;
  /** Why the database is given up, if it is. */
  readonly givenUp: HubError | undefined;
}

/**
 * Gives the database up when a statement got no answer for three seconds after `stopping` was
 * aborted: with each of the many steps of a stop waiting until its own timeout, it would take minutes.
 */
export function createAnswerWatch(stopping: AbortSignal | undefined): AnswerWatch {
  if (stopping === undefined) return patientWatch;
  const waiting = new Set<{ readonly sinceMs: number; reject(reason: HubError): void }>();
  let givenUp: HubError | undefined;

  function watch(): void {
    const stoppingSinceMs = performance.now();
    const timer = setInterval(() => {
      const [oldest] = waiting;
      if (oldest === undefined) return;
      const waitedMs = performance.now() - Math.max(oldest.sinceMs, stoppingSinceMs);
      if (waitedMs < lastPatienceMs) return;
      clearInterval(timer);
      givenUp = new HubError('storage_unavailable', text`The database gives no answer.`, {
        cause: new Error('given up, as the hub is stopping'),
        retryAfterSeconds: 5,
      });
      for (const { reject } of waiting) reject(givenUp);
      waiting.clear();
    }, checkIntervalMs);
    timer.unref();
  }

  if (stopping.aborted) watch();
  else stopping.addEventListener('abort', watch, { once: true });

  return {
    async wait(answer) {
      const { promise, reject } = Promise.withResolvers<never>();
      const entry = { sinceMs: performance.now(), reject };
      waiting.add(entry);
      if (givenUp !== undefined) reject(givenUp);
      try {
        return await Promise.race([answer, promise]);
      } finally {
        waiting.delete(entry);
      }
    },
    get givenUp() {
      return givenUp;
    },
  };
}

const patientWatch: AnswerWatch = { wait: (answer) => answer, givenUp: undefined };

const maxAttempts = 3;
/** The other transaction goes first: at once, this one could take from it what both want again. */
const pauseMs = { min: 10, spread: 30 };

/**
 * Does work again that PostgreSQL undid because it and another transaction waited for each other (`deadlock_detected`,
 * `serialization_failure`). Nothing of it is left, and the other one goes on. Rejects after three attempts.
 */
export async function retryAfterDeadlock<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === maxAttempts || !isDeadlock(error)) throw error;
      await sleep(pauseMs.min + Math.random() * pauseMs.spread);
    }
  }
}
