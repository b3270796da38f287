import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type Fleet, startFleet } from './fleet.ts';

export interface RestReport {
  readonly residentMiB: number;
  /** Of the instance that asks most, as the log of PostgreSQL counts them. */
  readonly statementsPerSecond: number;
  /** The same for each of its statements, the most frequent first. */
  readonly byStatement: readonly (readonly [string, number])[];
}

const serverCount = 2_000;
const extraRouteCount = 8_000;
const restSeconds = 60;

/**
 * What an instance holds and asks with 10,000 routes, 2,000 of them to servers of another instance. A statement is what
 * PostgreSQL logs as one (`log_statement = all`), `begin` and `commit` too.
 */
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
  const statements = await logStatements(fleet, restSeconds * 1000);
  const [first = []] = fleet.hubs
    .map(({ name }) => statements.filter(({ from }) => from === name).map(({ text }) => text))
    .toSorted((left, right) => right.length - left.length);
  const counts = Map.groupBy(first, (text) => text);
  return {
    residentMiB: residentMiB(measured.pid),
    statementsPerSecond: first.length / restSeconds,
    byStatement: [...counts]
      .map(([text, all]) => [text, all.length / restSeconds] as const)
      .toSorted(([, left], [, right]) => right - left),
  };
}

/** Every statement that is asked in a time, and by whom; without the values in it. */
async function logStatements(
  fleet: Fleet,
  durationMs: number,
): Promise<readonly { readonly from: string; readonly text: string }[]> {
  const statements: { from: string; text: string }[] = [];
  let isCounting = false;
  fleet.postgres.onLog((line) => {
    const [, from = '', text = ''] =
      /^from=(\S+) LOG: {2}(?:statement|execute [^:]+): (.*)$/.exec(line) ?? [];
    if (isCounting && from !== '') statements.push({ from, text: text.slice(0, 90) });
  });
  const client = new pg.Client(fleet.databaseUrl);
  await client.connect();
  await client.query("alter system set log_line_prefix = 'from=%a '");
  await client.query("alter system set log_statement = 'all'");
  await client.query('select pg_reload_conf()');
  await client.end();
  await pause(1_000);
  isCounting = true;
  await pause(durationMs);
  isCounting = false;
  return statements;
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
