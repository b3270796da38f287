import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type Fleet, startFleet } from './fleet.ts';

export interface RestReport {
  readonly residentMiB: number;
  /** Of one instance. */
  readonly statementsPerSecond: number;
}

const serverCount = 2_000;
const extraRouteCount = 8_000;
const restSeconds = 30;

/** What an instance holds and asks with 10,000 routes, 2,000 of them to servers of another instance. */
export async function measureAtRest(): Promise<RestReport> {
  const extraRoutes = Object.fromEntries(
    Array.from({ length: extraRouteCount }, (_, index) => [
      `/apps/app-${index}/`,
      `http://192.0.2.1:${1_000 + index}`,
    ]),
  );
  await using fleet = await startFleet({ hubs: 2, gateways: 0, extraRoutes });
  const [measured, other] = fleet.hubs;
  if (measured === undefined || other === undefined) throw new Error('two hubs are needed');
  await addRunningServers(fleet, other.name);
  await pause(5_000);
  const client = new pg.Client(fleet.databaseUrl);
  await client.connect();
  // What the server does for itself is no load of a hub.
  await client.query('alter system set autovacuum = off');
  await client.query('select pg_reload_conf()');
  const before = await countTransactions(client);
  await pause(restSeconds * 1000);
  const after = await countTransactions(client);
  await client.end();
  return {
    residentMiB: residentMiB(measured.pid),
    statementsPerSecond: (after - before) / restSeconds / fleet.hubs.length,
  };
}

/** Each statement outside of a transaction is one; the ones of this program are left out. */
async function countTransactions(client: pg.Client): Promise<number> {
  await client.query('select pg_stat_clear_snapshot()');
  // What a backend did is told to the statistics after a moment.
  await pause(1_500);
  const { rows } = await client.query<{ total: string }>(
    'select xact_commit + xact_rollback as total from pg_stat_database where datname = current_database()',
  );
  return Number(rows[0]?.total);
}

async function addRunningServers(fleet: Fleet, owner: string): Promise<void> {
  const client = new pg.Client(fleet.databaseUrl);
  await client.connect();
  try {
    await client.query('begin');
    await client.query(
      `insert into users (id, name, admin, invited, created_at)
       select 'resting-' || n, 'resting-' || n, 0, 1, $1 from generate_series(1, $2::int) n`,
      [Date.now(), serverCount],
    );
    await client.query(
      `insert into servers (id, user_id, name, state, url, spawner_state, user_options, created_at, started_at, instance_id)
       select $1 || n, 'resting-' || n, '', 'running', 'http://192.0.2.1:' || (1000 + n), '{}', '{}', $2, $2,
              (select id from instances where name = $3)
       from generate_series(1, $4::int) n`,
      [randomUUID(), Date.now(), owner, serverCount],
    );
    await client.query('commit');
  } finally {
    await client.end();
  }
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}
