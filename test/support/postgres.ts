import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { sql } from 'kysely';
import pg from 'pg';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { freePort } from './free-port.ts';
import { memoryFolder } from './memory-folder.ts';
import { pathOf, requires } from './requires.ts';

/** Where a PostgreSQL is, and how to log in. */
export interface PostgresLogin {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** A PostgreSQL cluster in a temporary directory. */
export interface PostgresCluster extends PostgresLogin, AsyncDisposable {
  /** The server itself; its connections are its children. */
  readonly pid: number;
  /** Folder for a tablespace, where a small disk was asked for. */
  readonly smallDisk: string;
  /** Makes an empty database and returns its URL. */
  createDatabase(): Promise<string>;
  /** Ends the server at once, as a power cut would. */
  stop(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Keeps the connections open but answers nothing. */
  freeze(): void;
  thaw(): void;
  /** Calls back with each line of the server's log. */
  onLog(listener: (line: string) => void): void;
}

/** Whether PostgreSQL is installed; see requires. */
export function hasPostgres(): boolean {
  return requires('postgres');
}

export interface PostgresOptions {
  /** In place of those that suit most tests. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Makes `smallDisk`, which needs root; the mount namespace of the server, and so the disk, ends with it. */
  readonly smallDiskMib?: number;
  /** Makes a standby of this one, which must have `wal_level=replica` and a free `max_wal_senders`. */
  readonly standbyOf?: PostgresLogin;
}

/** Starts PostgreSQL on a free loopback port. The password is asked for over TCP. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresCluster> {
  const directory = mkdtempSync(join(memoryFolder(), 'hub-postgres-'));
  const data = join(directory, 'data');
  // PostgreSQL refuses to run as root.
  const account = process.getuid?.() === 0 ? accountOf('postgres') : undefined;
  if (account !== undefined) chownSync(directory, account.uid, account.gid);
  const asAccount = { ...account, cwd: directory };
  const smallDisk = join(directory, 'small-disk');

  const passwordFile = join(directory, 'password');
  writeFileSync(passwordFile, 'hub-password\n', { mode: 0o644 });
  const [maker, ...makerArguments] =
    options.standbyOf === undefined
      ? [
          'initdb',
          ...['-D', data, '-U', 'hub', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`],
          ...['-N', '-E', 'UTF8', '--locale=C.UTF-8'],
        ]
      : [
          'pg_basebackup',
          ...['-D', data, '-d', connectionString(options.standbyOf), '-R', '-X', 'stream'],
          ...['--checkpoint=fast', '--no-sync'],
        ];
  const programs = dirname(pathOf('postgres'));
  const made = spawnSync(join(programs, maker), makerArguments, { ...asAccount, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`${maker} failed: ${made.stderr}`);

  const port = await freePort();
  const base = { host: '127.0.0.1', port, user: 'hub', password: 'hub-password' };
  let server: ChildProcess | undefined;
  const logListeners: ((line: string) => void)[] = [];

  async function start(): Promise<void> {
    // A killed server leaves it behind.
    rmSync(join(data, 'postmaster.pid'), { force: true });
    const settings = Object.entries({
      port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: directory,
      fsync: 'off',
      full_page_writes: 'off',
      wal_level: 'minimal',
      max_wal_senders: 0,
      autovacuum: 'off',
      max_connections: 500,
      ...options.settings,
    }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const command = [join(programs, 'postgres'), '-D', data, ...settings];
    const started =
      options.smallDiskMib === undefined
        ? spawn(command[0] ?? '', command.slice(1), { ...asAccount, stdio: outputOnly })
        : spawn(pathOf('unshare'), onSmallDisk(smallDisk, options.smallDiskMib, command), {
            cwd: directory,
            stdio: outputOnly,
          });
    server = started;
    let output = '';
    const ready = Promise.withResolvers<void>();
    started.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (/ready to accept (?:read-only )?connections/.test(output)) ready.resolve();
      output = output.slice(-4000);
    });
    createInterface({ input: started.stderr }).on('line', (line) => {
      for (const listener of logListeners) listener(line);
    });
    started.once('exit', () => ready.reject(new Error(`postgres ended: ${output}`)));
    await ready.promise;
    started.unref();
    (started.stderr as unknown as { unref(): void }).unref();
  }

  async function stop(): Promise<void> {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const exit = once(server, 'exit');
    server.ref();
    // SIGQUIT: immediate shutdown, which takes the server's children along.
    server.kill('SIGQUIT');
    await exit;
  }

  /** The server itself first, so that it starts no more. */
  function signalAll(signal: NodeJS.Signals): void {
    const pid = server?.pid;
    if (pid === undefined) return;
    process.kill(pid, signal);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    for (const child of children === '' ? [] : children.split(' ')) {
      try {
        process.kill(Number(child), signal);
      } catch (error) {
        // A connection that ended in this moment took its process along.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  }

  // When the test run itself is ended, nothing may be left behind.
  const endWithProcess = () => server?.kill('SIGQUIT');
  process.once('exit', endWithProcess);

  await start();
  return {
    ...base,
    smallDisk,
    get pid() {
      return server?.pid ?? 0;
    },
    start,
    stop,
    onLog: (listener) => void logListeners.push(listener),
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    createDatabase: () => createDatabase(base),
    async [Symbol.asyncDispose]() {
      process.off('exit', endWithProcess);
      await stop();
      if (existsSync(directory)) rmSync(directory, { recursive: true, force: true });
    },
  };
}

function connectionString({ host, port, user, password }: PostgresLogin): string {
  return `postgresql://${user}:${password}@${host}:${port}/postgres`;
}

/** Makes a database, empty unless it is to be a copy of another one, and returns its URL. */
export async function createDatabase(
  login: PostgresLogin,
  template = 'template1',
): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await withClient({ ...login, database: 'postgres' }, (client) =>
    // Copies the files, where the other strategy would write each of their pages to the log.
    client.query(`create database ${name} template ${template} strategy file_copy`),
  );
  return urlOf(login, name);
}

/**
 * The name of a database for copies, which `fill` brings about. It is made once in a cluster: several
 * processes may ask for it at once.
 */
export async function createTemplate(
  login: PostgresLogin,
  fill: (url: string) => Promise<void>,
): Promise<string> {
  const name = 'hub_template';
  await withClient({ ...login, database: 'postgres' }, async (client) => {
    // Until the end of the connection.
    await client.query('select pg_advisory_lock(1)');
    const { rowCount } = await client.query(
      `select from pg_database where datname = '${name}' and not datallowconn`,
    );
    if (rowCount !== 0) return;
    await client.query(`drop database if exists ${name}`);
    await client.query(`create database ${name}`);
    await fill(urlOf(login, name));
    // One that is in use cannot be copied.
    await client.query(`alter database ${name} with allow_connections false`);
  });
  return name;
}

function urlOf({ user, password, host, port }: PostgresLogin, database: string): string {
  return `postgresql://${user}:${password}@${host}:${port}/${database}`;
}

/** Identifies the tables, columns and triggers of a database; undefined without a schema. */
export async function readSchema({ kysely }: HubDatabase): Promise<string | undefined> {
  const { rows } = await sql<{ schema: string }>`
    select md5(string_agg(part, ',' order by part)) as schema from (
      select format('%s %s %s', attrelid, attname, atttypid) as part
        from pg_attribute join pg_class on pg_class.oid = attrelid
        where relnamespace = 'public'::regnamespace
      union all select format('trigger %s', oid) from pg_trigger
      union all select format('version %s', version) from hub_schema
    ) parts`.execute(kysely);
  return rows[0]?.schema;
}

/** Removes all rows, which takes a fraction of the time to make another database. */
export async function emptyDatabase({ kysely }: HubDatabase): Promise<void> {
  await sql`do $$
    declare name text;
    begin
      -- Neither triggers nor foreign keys.
      perform set_config('session_replication_role', 'replica', true);
      for name in
        select tablename from pg_tables where schemaname = 'public' and tablename <> 'hub_schema'
      loop
        execute format('delete from %I', name);
      end loop;
    end $$`.execute(kysely);
}

/** Runs a statement over a connection of its own and returns its rows. */
export function queryPostgres<Row extends pg.QueryResultRow>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return withClient(
    { connectionString: url },
    async (client) => (await client.query<Row>(text, [...values])).rows,
  );
}

async function withClient<Result>(
  config: pg.ClientConfig,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const outputOnly: ['ignore', 'ignore', 'pipe'] = ['ignore', 'ignore', 'pipe'];

/** Arguments of `unshare` that mount a disk and become the server, under its own account. */
function onSmallDisk(directory: string, mebibytes: number, command: readonly string[]): string[] {
  mkdirSync(directory, { recursive: true });
  const script = `mount -t tmpfs -o size=${mebibytes}m tmpfs ${directory} && chown postgres ${directory} && exec ${pathOf('setpriv')} --reuid=postgres --regid=postgres --clear-groups -- "$@"`;
  return ['--mount', 'sh', '-c', script, 'sh', ...command];
}

function accountOf(name: string): { uid: number; gid: number } {
  const read = (flag: string) => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout);
  return { uid: read('-u'), gid: read('-g') };
}
