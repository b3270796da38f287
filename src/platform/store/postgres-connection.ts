import { Socket } from 'node:net';
import { Kysely } from 'kysely';
import pg from 'pg';
import type { Logger } from 'pino';
import { HubError, StartupError } from '../errors.ts';
import { type AnswerWatch, createAnswerWatch, guardDialect } from './guarded-dialect.ts';
import { createPostgresDialect } from './postgres-dialect.ts';
import { clientOfHosts, hostUrls } from './postgres-hosts.ts';

const connectionCount = 10;
const connectionTimeoutMs = 5000;
const keepAliveDelayMs = 10_000;
const statementTimeoutMs = 15_000;
/** For what is urgent: an answer that takes longer is asked for again. */
const urgentTimeoutMs = 3_000;
const idleTransactionTimeoutMs = 30_000;
/** How long the server may take to close a connection that has said goodbye. */
const endGraceMs = 1_000;

export interface PostgresConnectionOptions {
  readonly url: string;
  readonly log: Logger;
  /** Where the URL stands in the configuration. */
  readonly setting?: string;
  /** How long a statement may take. */
  readonly statementTimeoutMs?: number;
  /** Aborted when the hub is about to stop: a database that hangs does not keep it. */
  readonly stopping?: AbortSignal | undefined;
}

/** A pool of connections to a PostgreSQL database. */
export interface PostgresConnection<Tables> {
  readonly kysely: Kysely<Tables>;
  /** Over one connection of its own, so that nothing waits for those of the pool. */
  readonly urgent: Kysely<Tables>;
  readonly answers: AnswerWatch;
  /** Closes the pool and, if that has not happened, the connections of all clients. */
  close(): Promise<void>;
  /** Makes a client outside the pool; it is not yet connected. */
  createClient(): pg.Client;
  /** Turns what went wrong during the start into a StartupError without the password. */
  explain(thrown: unknown): Error;
}

/** Makes a pool; nothing is connected before the first query. */
export function openPostgresConnection<Tables>(
  options: PostgresConnectionOptions,
): PostgresConnection<Tables> {
  const { url, log, stopping, setting = 'Hub.database_url' } = options;
  const urls = hostUrls(url, setting);
  const address = describeAddress(urls);
  const timeoutMs = options.statementTimeoutMs ?? statementTimeoutMs;
  const settings: pg.ClientConfig = {
    connectionString: urls[0],
    application_name: 'hub',
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
    connectionTimeoutMillis: connectionTimeoutMs,
    statement_timeout: timeoutMs,
    // The server's own limit is of no use when the server or the network is gone.
    query_timeout: timeoutMs + 1000,
    idle_in_transaction_session_timeout: idleTransactionTimeoutMs,
    types: { getTypeParser: findTypeParser },
  };
  const sockets = new Set<Socket>();
  const BoundedClient = boundClient(sockets);
  const makeProbe = (connectionString: string) =>
    new BoundedClient({
      ...settings,
      connectionString,
      connectionTimeoutMillis: connectionTimeoutMs / (urls.length + 1),
    });
  const Client = urls.length > 1 ? clientOfHosts(BoundedClient, urls, makeProbe) : BoundedClient;
  const answers = createAnswerWatch(stopping);

  function openPool(more: pg.PoolConfig) {
    const pool = new pg.Pool({ ...settings, Client, ...more });
    // Without a listener the loss of an idle connection would end the process.
    pool.on('error', (error) => {
      log.warn({ address, reason: error.message }, 'database connection lost');
    });
    pool.on('connect', (client) => client.on('error', () => {}));
    const { dialect, close } = guardDialect(createPostgresDialect({ pool }), answers);
    return { kysely: new Kysely<Tables>({ dialect }), close };
  }

  // Where others take every connection that becomes free, the last one is not given back.
  const { kysely, close } = openPool({ max: connectionCount, min: 1 });
  const urgent = openPool({
    max: 1,
    min: 1,
    connectionTimeoutMillis: urgentTimeoutMs,
    statement_timeout: urgentTimeoutMs,
    query_timeout: urgentTimeoutMs + 1000,
  });
  return {
    kysely,
    urgent: urgent.kysely,
    answers,
    async close() {
      await Promise.all([close(), urgent.close()]);
      if (answers.givenUp !== undefined) for (const socket of sockets) socket.destroy();
    },
    createClient: () => new Client(settings),
    explain: (thrown) => explain(thrown, address, setting),
  };
}

/**
 * Clients whose end never waits long, and that leave the pool after a query that got no answer: every
 * later one would wait behind it. What they hold open is in `sockets`.
 */
function boundClient(sockets: Set<Socket>): typeof pg.Client {
  return class BoundedClient extends pg.Client {
    readonly #socket: Socket;

    constructor(config: pg.ClientConfig) {
      const socket = new Socket();
      super({ ...config, stream: () => socket });
      this.#socket = socket;
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }

    // biome-ignore lint/suspicious/noExplicitAny: the overloads are those of the base class
    override query(...parts: any): any {
      const result: unknown = super.query.apply(this, parts);
      if (result instanceof Promise) {
        result.catch((error: unknown) => {
          if (error instanceof Error && error.message === 'Query read timeout') {
            this.end().catch(() => {
              // It is of no use any more, however it ends.
            });
          }
        });
      }
      return result;
    }

    // biome-ignore lint/suspicious/noExplicitAny: the overloads are those of the base class
    override end(...parts: any): any {
      setTimeout(() => this.#socket.destroy(), endGraceMs).unref();
      return super.end.apply(this, parts);
    }
  };
}

/** Parses int8 as a number: times and counts are far below 2^53. */
const findTypeParser = ((oid: number, format?: 'text' | 'binary') =>
  oid === pg.types.builtins.INT8 && format !== 'binary'
    ? Number
    : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser;

/** Hosts, ports and database of URLs that differ in their hosts, without user and password. */
function describeAddress(urls: readonly string[]): string {
  const parsed = urls.map((url) => URL.parse(url));
  const hosts = parsed.map((url) => {
    const host = url?.searchParams.get('host') ?? decodeURIComponent(url?.hostname ?? '');
    return `${host || 'localhost'}:${url?.port || '5432'}`;
  });
  if (parsed.includes(null)) return 'PostgreSQL';
  return `PostgreSQL at ${hosts.join(',')}${parsed[0]?.pathname}`;
}

function explain(thrown: unknown, address: string, setting: string): Error {
  if (thrown instanceof StartupError) return new StartupError(`${address}: ${thrown.message}`);
  const error = thrown instanceof HubError ? thrown.cause : thrown;
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  const say = (message: string) => new StartupError(`${address} ${message}`);
  switch (code) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return say(`refuses the connection: start PostgreSQL, or correct ${setting}`);
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return say(`is not known by this name: correct the host in ${setting}`);
    case '28P01':
    case '28000':
      return say(`refuses the user or the password: correct them in ${setting}`);
    case '3D000':
      return say(`has no such database: create it, or correct ${setting}`);
    case '42501':
      return say("does not let the hub's user create tables: grant it create on the schema");
    case '42P01':
      return say(`holds no tables of a hub: correct ${setting}`);
    case '42P07':
      return say('already holds tables of another program: give the hub a database of its own');
    case '53300':
      return say('has no connection to spare: raise max_connections or end other programs');
    case '53100':
      return say('has a full disk: make room');
    case '25006':
      return say(`can only be read: name the primary server in ${setting}`);
    case '57P03':
      return say('is starting or stopping: try again in a moment');
    case 'ERR_INVALID_URL':
      return say('is not a valid URL: write special characters of the password as %XX');
    case undefined:
      return say(`does not answer: check the network and ${setting}`);
    default:
      return say(`cannot be used (${String(code)}): ${(error as Error).message}`);
  }
}
