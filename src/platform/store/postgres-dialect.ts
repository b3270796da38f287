import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresDialect,
  type PostgresDialectConfig,
  type QueryResult,
} from 'kysely';
import { escapeLiteral } from 'pg';

/**
 * Kysely's dialect for PostgreSQL, but a statement with `isLast` in a transaction is sent in one message with the
 * commit, which fails when it did.
 */
export function createPostgresDialect(config: PostgresDialectConfig): Dialect {
  const dialect = new PostgresDialect(config);
  return {
    createDriver: () => joinCommit(dialect.createDriver()),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (kysely) => dialect.createIntrospector(kysely),
  };
}

function joinCommit(driver: Driver): Driver {
  const connections = new WeakMap<DatabaseConnection, JoiningConnection>();
  const joining = (connection: DatabaseConnection) => connection as JoiningConnection;

  return {
    init: (options) => driver.init(options),
    async acquireConnection(options) {
      const inner = await driver.acquireConnection(options);
      const connection = connections.get(inner) ?? new JoiningConnection(inner);
      connections.set(inner, connection);
      return connection;
    },
    async beginTransaction(connection, settings) {
      await driver.beginTransaction(joining(connection).inner, settings);
      joining(connection).isInTransaction = true;
    },
    async commitTransaction(connection) {
      const { inner, last } = joining(connection);
      if (last === undefined) await driver.commitTransaction(inner);
      else await inner.executeQuery(CompiledQuery.raw(`${writeOut(last)}; commit`));
      joining(connection).endTransaction();
    },
    async rollbackTransaction(connection) {
      joining(connection).endTransaction();
      await driver.rollbackTransaction(joining(connection).inner);
    },
    releaseConnection: (connection, options) =>
      driver.releaseConnection(joining(connection).inner, options),
    destroy: (options) => driver.destroy(options),
  };
}

class JoiningConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  isInTransaction = false;
  /** What is sent with the commit. */
  last: CompiledQuery | undefined;

  constructor(inner: DatabaseConnection) {
    this.inner = inner;
  }

  async executeQuery<R>(
    query: CompiledQuery & { readonly isLast?: boolean },
  ): Promise<QueryResult<R>> {
    if (query.isLast !== true || !this.isInTransaction) return this.inner.executeQuery<R>(query);
    this.last = query;
    return { rows: [] };
  }

  streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    return this.inner.streamQuery<R>(query, chunkSize);
  }

  endTransaction(): void {
    this.isInTransaction = false;
    this.last = undefined;
  }
}

/** A statement with its parameters, for a message that takes none beside it. */
function writeOut({ sql, parameters }: CompiledQuery): string {
  return sql.replace(/\$(\d+)/g, (_, number: string) => literalOf(parameters[Number(number) - 1]));
}

function literalOf(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return escapeLiteral(value);
  // So that no minus makes a comment of what follows another one.
  if (typeof value === 'number') return `(${value})`;
  throw new TypeError('the last statement of a transaction takes texts, numbers and null only');
}
