import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from 'kysely';
import { HubError } from '../errors.ts';
import { toStorageError } from './storage-error.ts';

/** A dialect whose failures are HubErrors. */
export interface GuardedDialect {
  readonly dialect: Dialect;
  /** Waits for what is under way and closes. A query after that is a `storage_unavailable`. */
  close(): Promise<void>;
}

/**
 * Wraps a dialect so that every failure of the storage leaves it as a HubError. This is the one
 * place where that happens: stores need not care.
 */
export function guardDialect(dialect: Dialect): GuardedDialect {
  const driver = dialect.createDriver();
  let closing: Promise<void> | undefined;
  // Kysely's own destroy() would make later queries fail with an error that looks like a bug.
  const close = () => {
    closing ??= driver.destroy();
    return closing;
  };
  return {
    dialect: {
      createDriver: () => guardDriver(driver, { isClosed: () => closing !== undefined, close }),
      createQueryCompiler: () => dialect.createQueryCompiler(),
      createAdapter: () => dialect.createAdapter(),
      createIntrospector: (kysely) => dialect.createIntrospector(kysely),
    },
    close,
  };
}

interface Closing {
  isClosed(): boolean;
  close(): Promise<void>;
}

function guardDriver(driver: Driver, { isClosed, close }: Closing): Driver {
  const guarded = new WeakMap<DatabaseConnection, GuardedConnection>();
  const innerOf = (connection: DatabaseConnection) => (connection as GuardedConnection).inner;

  return {
    init: (options) => translated(driver.init(options)),
    async acquireConnection(options) {
      if (isClosed()) throw new HubError('storage_unavailable', 'The database is closed.');
      const inner = await translated(driver.acquireConnection(options));
      const connection = guarded.get(inner) ?? new GuardedConnection(inner);
      guarded.set(inner, connection);
      return connection;
    },
    beginTransaction: (connection, settings) =>
      translated(driver.beginTransaction(innerOf(connection), settings)),
    commitTransaction: (connection) => translated(driver.commitTransaction(innerOf(connection))),
    async rollbackTransaction(connection) {
      try {
        await driver.rollbackTransaction(innerOf(connection));
      } catch {
        // The server ends the transaction of a lost connection, and the driver discards the
        // connection. Throwing here would hide the error that made the rollback necessary.
      }
    },
    releaseConnection: (connection, options) =>
      driver.releaseConnection(innerOf(connection), options),
    destroy: close,
  };
}

class GuardedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;

  constructor(inner: DatabaseConnection) {
    this.inner = inner;
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return translated(this.inner.executeQuery<R>(query));
  }

  async *streamQuery<R>(query: CompiledQuery, chunkSize: number) {
    try {
      yield* this.inner.streamQuery<R>(query, chunkSize);
    } catch (error) {
      throw toStorageError(error);
    }
  }
}

async function translated<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    throw toStorageError(error);
  }
}
