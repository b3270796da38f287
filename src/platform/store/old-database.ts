import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sql } from 'kysely';
import { pino } from 'pino';
import { StartupError } from '../errors.ts';
import { storageFailureOf } from './storage-error.ts';

/** A row as text, whatever the column holds; null also for a column that is not there. */
export type OldRow<Column extends string> = Readonly<Record<Column, string | null>>;

/** The database of another program, which is read and never written; all of it as it was at one moment. */
export interface OldDatabase extends AsyncDisposable {
  has(table: string, column?: string): boolean;
  /** Rows of a table, or of none where it is not there; `where` is SQL. */
  read<Column extends string>(
    table: string,
    columns: readonly Column[],
    where?: string,
  ): Promise<readonly OldRow<Column>[]>;
  count(table: string, where?: string): Promise<number>;
}

/** What both kinds of database are asked for. */
interface Connection {
  query(statement: string): Promise<readonly unknown[]>;
  /** Rows with `name` of a table and `part` of a column. */
  readonly columns: string;
  close(): Promise<void>;
}

const readTimeoutMs = 600_000;

/**
 * Opens a database by a URL as SQLAlchemy takes it: `sqlite:///relative`, `sqlite:////absolute` or
 * `postgresql[+driver]://…`. Throws StartupError.
 */
export async function openOldDatabase(
  url: string,
  { directory, setting }: { readonly directory: string; readonly setting: string },
): Promise<OldDatabase> {
  const file = /^sqlite:\/\/\/(.+)$/s.exec(url)?.[1];
  const isPostgres = /^postgres(?:ql)?(?:\+\w+)?:\/\//.test(url);
  if (file === undefined && !isPostgres) {
    throw new StartupError(
      `${setting} must begin with sqlite:/// or postgresql://: copy a MySQL database to PostgreSQL first, such as with pgloader`,
    );
  }
  const { query, columns, close } =
    file === undefined
      ? await openPostgres(url.replace(/^postgres(?:ql)?(?:\+\w+)?:/, 'postgresql:'), setting)
      : openSqlite(resolve(directory, file));
  const known = new Map<string, Set<string>>();
  for (const { name, part } of (await query(columns)) as { name: string; part: string }[])
    known.set(name, (known.get(name) ?? new Set()).add(part));
  const has = (table: string, column?: string) =>
    column === undefined ? known.has(table) : known.get(table)?.has(column) === true;
  return {
    has,
    async count(table, where = 'true') {
      if (!has(table)) return 0;
      const [row] = await query(`select count(*) as total from "${table}" where ${where}`);
      return Number((row as { total: unknown }).total);
    },
    async read<Column extends string>(table: string, names: readonly Column[], where = 'true') {
      if (!has(table)) return [];
      const values = names.map(
        (name) => `${has(table, name) ? `cast("${name}" as text)` : 'null'} as "${name}"`,
      );
      const rows = await query(`select ${values.join(', ')} from "${table}" where ${where}`);
      return rows as readonly OldRow<Column>[];
    },
    [Symbol.asyncDispose]: close,
  };
}

function openSqlite(file: string): Connection {
  if (!existsSync(file)) throw new StartupError(`there is no database ${file}`);
  const explain = (error: unknown) => {
    const reason =
      storageFailureOf(error) === 'locked'
        ? 'another program is writing to it: try again, or stop that program'
        : (error as Error).message;
    return new StartupError(`${file} cannot be read: ${reason}`, { cause: error });
  };
  let database: DatabaseSync;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
    database.exec('begin');
  } catch (error) {
    throw explain(error);
  }
  return {
    columns: `select tables.name as name, columns.name as part
      from sqlite_master as tables, pragma_table_info(tables.name) as columns where tables.type = 'table'`,
    async query(statement) {
      try {
        return database.prepare(statement).all();
      } catch (error) {
        throw explain(error);
      }
    },
    close: async () => database.close(),
  };
}

async function openPostgres(url: string, setting: string): Promise<Connection> {
  const { openPostgresConnection } = await import('./postgres-connection.ts');
  const { kysely, close, explain } = openPostgresConnection<unknown>({
    url,
    setting,
    log: pino({ level: 'silent' }),
    statementTimeoutMs: readTimeoutMs,
  });
  const { promise: done, resolve: end } = Promise.withResolvers<void>();
  const { promise: ready, resolve: begin, reject } = Promise.withResolvers<typeof kysely>();
  const reading = kysely
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (transaction) => {
      begin(transaction);
      await done;
    })
    .catch(reject);
  try {
    const transaction = await ready;
    return {
      columns: `select table_name as name, column_name as part
        from information_schema.columns where table_schema = any (current_schemas(false))`,
      async query(statement) {
        try {
          return (await sql.raw(statement).execute(transaction)).rows;
        } catch (error) {
          throw explain(error);
        }
      },
      async close() {
        end();
        await reading;
        await close();
      },
    };
  } catch (error) {
    await close();
    throw explain(error);
  }
}
