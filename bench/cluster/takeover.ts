import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { percentile, startHealthProbe } from '../servers/health-probe.ts';
import { adminToken, startFleet } from './fleet.ts';

export interface TakeoverReport {
  readonly servers: number;
  /** Until the last one answered through the hub that is left. */
  readonly seconds: number;
  readonly healthP99Ms: number;
  /** Servers that did not come through it. */
  readonly missing: number;
}

const maxMs = 120_000;

/** Kills the hub that started many servers; the other one takes them over. */
export async function measureTakeover(count: number): Promise<TakeoverReport> {
  await using fleet = await startFleet({ hubs: 2, gateways: 0 });
  const [dying, left] = fleet.hubs;
  if (dying === undefined || left === undefined) throw new Error('two hubs are needed');
  const names = Array.from({ length: count }, (_, index) => `taken-${index}`);
  await startServersAt(dying.url, names);
  const client = new pg.Client(fleet.databaseUrl);
  await client.connect();
  const probe = await startHealthProbe(`${left.url}hub/health`);
  await dying.end('SIGKILL');
  const killedAt = performance.now();
  const deadline = killedAt + maxMs;
  let missing = count;
  while (missing > 0 && performance.now() < deadline) {
    await pause(500);
    missing = await countForeign(client, left.name);
  }
  const seconds = (performance.now() - killedAt) / 1000;
  await client.end();
  const healthP99Ms = percentile(await probe.stop(), 0.99);
  for (const name of names) if (!(await isServed(left.url, name))) missing += 1;
  await Promise.all(names.map((name) => fleet.api(`/users/${name}/server`, { method: 'DELETE' })));
  return { servers: count, seconds, healthP99Ms, missing };
}

/** Starts servers at one hub, and waits until each answers `ok`. */
export async function startServersAt(hubUrl: string, names: readonly string[]): Promise<void> {
  const ask = (path: string, body?: unknown) =>
    fetch(`${hubUrl}hub/api${path}`, {
      method: 'POST',
      headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  await ask('/users', { usernames: names });
  const waiting = names.values();
  const worker = async () => {
    for (const name of waiting) {
      await ask(`/users/${name}/server`);
      while (!(await isServed(hubUrl, name))) await pause(200);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

/** How many active servers do not belong to the hub of that name. */
async function countForeign(client: pg.Client, owner: string): Promise<number> {
  const { rows } = await client.query<{ total: string }>(
    `select count(*) as total from servers where state <> 'stopped'
     and instance_id is distinct from (select id from instances where name = $1)`,
    [owner],
  );
  return Number(rows[0]?.total);
}

async function isServed(hubUrl: string, name: string): Promise<boolean> {
  const headers = { authorization: `token ${adminToken}` };
  const answer = await fetch(`${hubUrl}user/${name}/`, { headers, redirect: 'manual' });
  return answer.status === 200 && (await answer.text()) === 'ok\n';
}
