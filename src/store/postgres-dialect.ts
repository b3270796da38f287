import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresDialect,
  type PostgresDialectConfig,
  type QueryResult,
} from 'kysely';

/**
 * Kysely's dialect for PostgreSQL, but a statement with `isLast` in a transaction is not waited for: the commit goes out
 * with it and fails when it did. Its clients need `pipeline`.
 */
export function createPostgresDialect(config: PostgresDialectConfig): Dialect {
  const dialect = new PostgresDialect(config);
  return {
    createDriver: () => pipelineCommit(dialect.createDriver()),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (kysely) => dialect.createIntrospector(kysely),
  };
}

function pipelineCommit(driver: Driver): Driver {
  const connections = new WeakMap<DatabaseConnection, PipelinedConnection>();
  const pipelined = (connection: DatabaseConnection) => connection as PipelinedConnection;

  return {
    init: (options) => driver.init(options),
    async acquireConnection(options) {
      const inner = await driver.acquireConnection(options);
      const connection = connections.get(inner) ?? new PipelinedConnection(inner);
      connections.set(inner, connection);
      return connection;
    },
    async beginTransaction(connection, settings) {
      await driver.beginTransaction(pipelined(connection).inner, settings);
      pipelined(connection).isInTransaction = true;
    },
    async commitTransaction(connection) {
      const last = pipelined(connection).takeLast();
      const committed = driver.commitTransaction(pipelined(connection).inner);
      // Why it failed, rather than that nothing could be committed then.
      const [failed] = (await Promise.allSettled([last, committed])).filter(
        ({ status }) => status === 'rejected',
      ) as PromiseRejectedResult[];
      if (failed !== undefined) throw failed.reason;
      pipelined(connection).isInTransaction = false;
    },
    async rollbackTransaction(connection) {
      // The rollback waits for it.
      void pipelined(connection).takeLast();
      pipelined(connection).isInTransaction = false;
      await driver.rollbackTransaction(pipelined(connection).inner);
    },
    releaseConnection: (connection, options) =>
      driver.releaseConnection(pipelined(connection).inner, options),
    destroy: (options) => driver.destroy(options),
  };
}

class PipelinedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  isInTransaction = false;
  #last: Promise<unknown> | undefined;

  constructor(inner: DatabaseConnection) {
    this.inner = inner;
  }

  async executeQuery<R>(
    query: CompiledQuery & { readonly isLast?: boolean },
  ): Promise<QueryResult<R>> {
    const answer = this.inner.executeQuery<R>(query);
    if (query.isLast !== true || !this.isInTransaction) return answer;
    this.#last = answer;
    // The commit fails with it.
    answer.catch(() => {});
    return { rows: [] };
  }

  streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    return this.inner.streamQuery<R>(query, chunkSize);
  }

  /** What the end of the transaction has to wait for. */
  takeLast(): Promise<unknown> | undefined {
    const last = this.#last;
    this.#last = undefined;
    return last;
  }
}
