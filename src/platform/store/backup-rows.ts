import { createReadStream } from 'node:fs';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { Kysely } from 'kysely';
import { StartupError } from '../errors.ts';
import { createSchema, versionProblem } from './migrate.ts';
import { createNodeSqliteDialect } from './node-sqlite-dialect.ts';
import { createDirectEngine } from './sqlite-engine.ts';

/**
 * Lines of a backup, many at once: what it is of, and for each table a list with its name, and a JSON object for each of its
 * rows. A table comes after those that it refers to.
 */
export type BackupLines = AsyncIterable<readonly string[]>;

/** The first line of a backup. */
export interface BackupHead {
  /** Of the schema. */
  readonly version: number;
  /** The last numbers that tables have given to rows, which they give to no other one. */
  readonly sequences: Readonly<Record<string, number>>;
}

/** An empty database into which a backup is written. */
export interface RowTarget {
  create(version: number): Promise<void>;
  /** Rows are JSON objects of columns and values. */
  insert(table: string, rows: readonly string[]): Promise<void>;
  finish(sequences: BackupHead['sequences']): Promise<void>;
}

export const rowsAtOnce = 1_000;

/** Not yet among TypeScript's types of JSON. */
const exact = JSON as unknown as {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source: string }) => unknown,
  ): Readonly<Record<string, SQLInputValue>>;
};

/** Writes a backup into a database. Throws StartupError for what cannot be one. */
export async function replay(lines: BackupLines, target: RowTarget): Promise<void> {
  let head: BackupHead | undefined;
  let table = '';
  let rows: string[] = [];
  async function flush(): Promise<void> {
    if (rows.length > 0) await target.insert(table, rows);
    rows = [];
  }
  for await (const some of lines)
    for (const line of some) {
      if (head === undefined) {
        head = readHead(line);
        await target.create(head.version);
      } else if (line.startsWith('[')) {
        await flush();
        [table] = JSON.parse(line) as [string];
      } else if (rows.push(line) === rowsAtOnce) {
        await flush();
      }
    }
  await flush();
  if (head === undefined) throw new StartupError('it is empty');
  await target.finish(head.sequences);
}

function readHead(line: string): BackupHead {
  const head = JSON.parse(line) as BackupHead;
  const problem = versionProblem(head.version);
  if (problem !== undefined) throw new StartupError(problem);
  return head;
}

/** The names of the tables that a version of the schema has on both databases, each after those that it refers to. */
export async function tablesOfVersion(version: number): Promise<string[]> {
  using database = new DatabaseSync(':memory:');
  await createSqliteSchema(database, version);
  const tables = database.prepare(
    `select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'hub_schema'
     order by rowid`,
  );
  return tables.all().map(({ name }) => String(name));
}

async function createSqliteSchema(database: DatabaseSync, version: number): Promise<void> {
  const writer = createDirectEngine(database);
  const kysely = new Kysely<unknown>({
    dialect: createNodeSqliteDialect({ writer, queueTimeoutMs: 60_000 }),
  });
  await kysely.transaction().execute((transaction) => createSchema(transaction, 'sqlite', version));
}

/** What an SQLite database has, as it is at one moment. */
export async function* linesOfSqlite(file: string): BackupLines {
  using database = new DatabaseSync(file, { readOnly: true });
  database.exec('begin');
  const version = Number(database.prepare('select version from hub_schema').get()?.['version']);
  const numbered = database.prepare('select name, seq from sqlite_sequence').all();
  const sequences = Object.fromEntries(numbered.map(({ name, seq }) => [name, seq]));
  yield [JSON.stringify({ version, sequences })];
  for (const table of await tablesOfVersion(version)) {
    let lines = [JSON.stringify([table])];
    const rows = database.prepare(`select * from "${table}"`);
    rows.setReadBigInts(true);
    for (const row of rows.iterate()) {
      lines.push(JSON.stringify(row, writeExactly));
      if (lines.length < rowsAtOnce) continue;
      yield lines;
      lines = [];
    }
    yield lines;
  }
}

function writeExactly(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? exact.rawJSON(String(value)) : value;
}

/** Makes an SQLite database in an empty file of what a backup has; the caller writes it to the disk. */
export async function fillSqlite(file: string, lines: BackupLines): Promise<void> {
  using database = new DatabaseSync(file);
  // Nobody uses it before it is whole.
  database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -262144');
  let laterStatements: string[] = [];
  await replay(lines, {
    async create(version) {
      await createSqliteSchema(database, version);
      // An index is sorted faster than filled, and what triggers do to other rows is in the backup.
      const parts = database
        .prepare(
          `select type, name, sql from sqlite_master where type in ('index', 'trigger') and sql is not null`,
        )
        .all();
      laterStatements = parts.map(({ sql }) => String(sql));
      for (const { type, name } of parts) database.exec(`drop ${type} "${name}"`);
      database.exec('begin');
    },
    async insert(table, rows) {
      const columns = Object.keys(JSON.parse(rows[0] ?? '{}') as object);
      const names = columns.map((column) => `"${column}"`).join(', ');
      const insert = database.prepare(
        `insert into "${table}" (${names}) values (${columns.map(() => '?').join(', ')})`,
      );
      for (const line of rows) insert.run(...Object.values(exact.parse(line, readExactly)));
    },
    async finish(sequences) {
      database.exec('delete from sqlite_sequence');
      const insert = database.prepare(`insert into sqlite_sequence (name, seq)
        select name, ? from sqlite_master where name = ? and sql like '% autoincrement%'`);
      for (const [table, last] of Object.entries(sequences)) insert.run(BigInt(last), table);
      for (const statement of laterStatements) database.exec(statement);
      database.exec('commit');
    },
  });
}

function readExactly(_key: string, value: unknown, { source }: { readonly source: string }) {
  const isLarge = typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return isLarge && /^-?\d+$/.test(source) ? BigInt(source) : value;
}

/** The lines as they are in a file. */
export async function* textOf(lines: BackupLines): AsyncIterable<string> {
  for await (const some of lines) yield `${some.join('\n')}\n`;
}

/** What `textOf` has written to a file, compressed. Throws StartupError where that is not whole. */
export async function* linesOfFile(file: string): BackupLines {
  const content = pipeline(createReadStream(file), createGunzip(), () => {});
  let rest = '';
  try {
    for await (const chunk of content.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      yield lines;
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartupError(`${file} is damaged or no backup of a hub (${reason})`, {
      cause: error,
    });
  }
}
