import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { useOwnPostgres } from '../support/databases.ts';
import { copiesOf } from '../support/managed-copies.ts';
import { hasPostgres, queryPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import {
  adminToken,
  createUsers,
  fixtureApp,
  getServer,
  isAlive,
  serverPath,
  startUntilReady,
  stopServer,
} from '../support/server-hub.ts';
import { serviceModel } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

/** Longer than an instance keeps its lease without a renewal. */
const longFaultMs = 12_000;
/** Between attempts, which would otherwise keep the machine busy for as long as the fault lasts. */
const pauseMs = 100;

const services = ['while-crowded', 'while-limited', 'while-read-only', 'while-full'];
afterEach(async () => {
  // A copy that a failed test has left would be one too many for the next run of it.
  for (const name of services) for (const pid of await copiesOf(name)) process.kill(pid, 'SIGKILL');
});

const logged = ({ logLines }: TestHub, message: RegExp) =>
  logLines.filter(({ msg }) => message.test(String(msg)));

/** Two hubs; the first one runs a service and the server of alice. */
async function startTwo(database_url: string, service: string) {
  const stack = new AsyncDisposableStack();
  const config = {
    Hub: { database_url, services: [{ name: service, command: ['sleep', '600'] }] },
    Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
  };
  const first = stack.use(await createTestHub(config));
  await until(async () => (await serviceModel(first, service))['ready'] === true, 'it is ready');
  await createUsers(first, 'alice');
  await startUntilReady(first, serverPath('alice'));
  const second = stack.use(await createTestHub(config));
  const pid = Number((await getServer(first, serverPath('alice'))).state?.['pid']);
  const [servicePid = 0] = await copiesOf(service);
  let count = 0;
  const written: string[] = [];
  /** Creates a user at one of the hubs. */
  async function write(hub: TestHub): Promise<number> {
    count += 1;
    const name = `user-${count}`;
    const answer = await hub.api(`/users/${name}`, adminToken, { method: 'POST' });
    if (answer.status === 201) written.push(name);
    else {
      expect(answer.status).toBe(503);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await answer.json()).toMatchObject({ code: 'storage_unavailable' });
    }
    return answer.status;
  }
  return {
    stack,
    hubs: [first, second] as const,
    pid,
    servicePid,
    write,
    async expectAllWell() {
      for (const hub of [first, second]) {
        await until(async () => (await write(hub)) === 201, 'users are created again');
        await until(
          async () => (await fetch(`${hub.url}hub/ready`)).status === 200,
          'hub ready again',
        );
        await until(
          async () => (await serviceModel(hub, service))['ready'] === true,
          'the service is ready again',
        );
        expect(await getServer(hub, serverPath('alice'))).toMatchObject({ ready: true });
        expect(logged(hub, /unhandled/)).toEqual([]);
      }
      expect(await copiesOf(service)).toHaveLength(1);
      expect(isAlive(pid)).toBe(true);
      // What was answered is there.
      for (const name of written) {
        expect((await second.api(`/users/${name}`, adminToken)).status).toBe(200);
      }
      await stopServer(second, serverPath('alice'));
      await until(() => !isAlive(pid), 'the server has ended');
    },
  };
}

/** Another client, which takes every connection that there is, and each that becomes free. */
function occupy(connectionString: string) {
  const taken = new Set<pg.Client>();
  let isOver = false;
  let refusals = 0;
  const taking = (async () => {
    while (!isOver) {
      const client = new pg.Client({ connectionString });
      client.on('error', () => taken.delete(client));
      try {
        await client.connect();
        taken.add(client);
      } catch {
        refusals += 1;
        await delay(50);
      }
    }
  })();
  return {
    refusals: () => refusals,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await taking;
      await Promise.all([...taken].map((client) => client.end()));
    },
  };
}

describe.skipIf(!hasPostgres())('two hubs on a PostgreSQL', () => {
  const cluster = useOwnPostgres({ settings: { max_connections: 40 } });

  async function databaseOfLimitedRole(): Promise<string> {
    const url = new URL(await cluster().createDatabase());
    const name = url.pathname.slice(1);
    await queryPostgres(
      url.href,
      `create role limited login password 'limited' connection limit 20`,
    );
    await queryPostgres(url.href, `alter database ${name} owner to limited`);
    await queryPostgres(url.href, `alter schema public owner to limited`);
    url.username = 'limited';
    url.password = 'limited';
    return url.href;
  }

  test.each([
    {
      fault: 'all connections are taken by others',
      service: 'while-crowded',
      make: () => cluster().createDatabase(),
    },
    {
      fault: 'its role may have no more connections',
      service: 'while-limited',
      make: databaseOfLimitedRole,
    },
  ])(
    '$fault: they answer or say 503, keep their leases and what they run',
    async ({ service, make }) => {
      const url = await make();
      const world = await startTwo(url, service);
      await using _ = world.stack;
      const statuses = new Set<number>();
      {
        await using crowd = occupy(url);
        await until(() => crowd.refusals() > 0, 'there are no connections left');
        const sinceMs = performance.now();
        while (performance.now() - sinceMs < longFaultMs) {
          const tries = Array.from({ length: 6 }, (_each, index) =>
            world.write(world.hubs[index % 2]!),
          );
          for (const status of await Promise.all(tries)) statuses.add(status);
          await delay(pauseMs);
          for (const hub of world.hubs) {
            expect((await fetch(`${hub.url}hub/health`)).status).toBe(200);
          }
        }
      }
      expect([...statuses].toSorted()).toContain(503);
      await world.expectAllWell();
      for (const hub of world.hubs) expect(logged(hub, /instance lease lost/)).toEqual([]);
      expect(isAlive(world.servicePid)).toBe(true);
    },
  );

  test('that takes no changes any more: they read, give up their services, and come back', async () => {
    const url = await cluster().createDatabase();
    const world = await startTwo(url, 'while-read-only');
    await using _ = world.stack;
    const operator = `${url}?options=${encodeURIComponent('-c default_transaction_read_only=off')}`;
    await queryPostgres(operator, 'alter system set default_transaction_read_only = on');
    await queryPostgres(operator, 'select pg_reload_conf()');
    try {
      for (const hub of world.hubs) {
        await until(async () => (await world.write(hub)) === 503, 'users are not created');
        expect((await hub.api('/users', adminToken)).status).toBe(200);
      }
      for (const hub of world.hubs) {
        await until(() => logged(hub, /instance lease lost/).length === 1, 'the lease is lost');
        const ready = await hub.api('/ready', adminToken);
        expect(ready.status).toBe(503);
        expect(await ready.json()).toMatchObject({ checks: { lease: { ready: false } } });
      }
      await until(() => !isAlive(world.servicePid), 'the service is ended');
      expect(isAlive(world.pid)).toBe(true);
    } finally {
      await queryPostgres(operator, 'alter system reset default_transaction_read_only');
      await queryPostgres(operator, 'select pg_reload_conf()');
    }
    await world.expectAllWell();
  });
});

describe.skipIf(!hasPostgres() || !requires('root', 'unshare', 'setpriv'))(
  'two hubs on a PostgreSQL with a small disk',
  () => {
    const cluster = useOwnPostgres({ smallDiskMib: 32 });

    test('that is full: they say so, read, keep what they run, and go on when there is room', async () => {
      const url = await cluster().createDatabase();
      const name = new URL(url).pathname.slice(1);
      const other = await cluster().createDatabase();
      await queryPostgres(other, `create tablespace small location '${cluster().smallDisk}'`);
      await queryPostgres(other, `alter database ${name} set tablespace small`);
      const world = await startTwo(url, 'while-full');
      await using _ = world.stack;
      await queryPostgres(url, 'create table filler (text text)');
      const isFull = (error: unknown) => (error as { code?: unknown }).code === '53100';
      for (let kib = 1_024; kib >= 4; kib /= 2) {
        await until(async () => {
          const row = `insert into filler select string_agg(md5(i::text), '') from generate_series(1, ${kib * 32}) i`;
          const failed = await queryPostgres(url, row).then(
            () => undefined,
            (error: unknown) => error,
          );
          if (failed !== undefined && !isFull(failed)) throw failed;
          return failed !== undefined;
        }, 'the disk is full');
      }
      const sinceMs = performance.now();
      const statuses: number[] = [];
      await until(async () => {
        for (const hub of world.hubs) statuses.push(await world.write(hub));
        return performance.now() - sinceMs > longFaultMs && statuses.at(-1) === 503;
      }, 'users are not created');
      for (const hub of world.hubs) {
        expect((await hub.api('/users', adminToken)).status).toBe(200);
        const refused = await hub.api('/users/somebody', adminToken, { method: 'POST' });
        expect(await refused.json()).toMatchObject({
          message: 'The disk of the database is full.',
        });
        expect((await fetch(`${hub.url}hub/health`)).status).toBe(200);
        expect(logged(hub, /instance lease lost/)).toEqual([]);
      }
      expect(isAlive(world.servicePid)).toBe(true);
      await queryPostgres(url, 'drop table filler');
      await world.expectAllWell();
    });
  },
);
