import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { hasRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { adminToken } from '../support/server-hub.ts';
import { startSilentRelay } from '../support/silent-relay.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

interface Readiness {
  readonly status: string;
  readonly checks?: Readonly<
    Record<string, { readonly ready: boolean; readonly problem?: string }>
  >;
}

async function readinessOf(url: string, token?: string) {
  const answer = await fetch(`${url}hub/ready`, {
    headers: token === undefined ? {} : { authorization: `token ${token}` },
  });
  const body = (await answer.json()) as Readiness;
  return { status: answer.status, headers: answer.headers, body };
}

describe('a hub with everything in place', () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await createTestHub({
      Hub: {
        services: [{ name: 'monitor', api_token: 'monitor-service-token' }],
        load_roles: [{ name: 'metrics', scopes: ['read:metrics'], services: ['monitor'] }],
      },
    });
  });
  afterAll(async () => hub[Symbol.asyncDispose]());

  test('is ready, and tells everyone no more than that', async () => {
    for (const token of [undefined, 'no-such-token']) {
      const { status, body } = await readinessOf(hub.url, token);
      expect([status, body]).toEqual([200, { status: 'ready' }]);
    }
    const internal = await fetch(`${hub.apiUrl}/ready`);
    expect([internal.status, await internal.json()]).toEqual([200, { status: 'ready' }]);
  });

  test('tells who may read the metrics how each part is', async () => {
    const { body } = await readinessOf(hub.url, 'monitor-service-token');
    expect(body).toEqual({
      status: 'ready',
      checks: {
        database: { ready: true },
        store: { ready: true },
        lease: { ready: true },
        listeners: { ready: true },
      },
    });
  });
});

test('a hub whose SQLite file is gone is not ready, but lives', async () => {
  await using hub = await createTestHub();
  await rename(join(hub.directory, 'hub.sqlite'), join(hub.directory, 'gone.sqlite'));
  await until(async () => (await readinessOf(hub.url)).status === 503, 'it is not ready');
  expect((await fetch(`${hub.url}hub/health`)).status).toBe(200);
  const { body, headers } = await readinessOf(hub.url, adminToken);
  expect(body.status).toBe('not_ready');
  expect(body.checks?.['database']).toMatchObject({ ready: false, problem: expect.any(String) });
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(hub.logLines.filter(({ msg }) => msg === 'hub not ready')).toHaveLength(1);
});

describe.skipIf(!hasPostgres())('a hub on PostgreSQL', () => {
  const cluster = usePostgres();

  test('is not ready while it gives no answer, and says so in its metrics', async () => {
    const url = new URL(await cluster().createDatabase());
    await using relay = await startSilentRelay(cluster());
    url.port = String(relay.port);
    await using folder = await createHubFolder({
      Hub: { database_url: url.href, authenticate_prometheus: false },
    });
    const hub = await folder.start();
    const storageUp = async () => {
      const text = await (await fetch(`${folder.url}hub/metrics`)).text();
      return /^hub_storage_up\{storage="database"\} (\d)/m.exec(text)?.[1];
    };
    expect((await readinessOf(folder.url, adminToken)).status).toBe(200);
    expect(await storageUp()).toBe('1');
    relay.fallSilent();
    await until(async () => (await readinessOf(folder.url)).status === 503, 'it is not ready');
    expect(await storageUp()).toBe('0');
    // However many ask, they wait for one and the same answer.
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => readinessOf(folder.url, adminToken)),
    );
    for (const { status, body } of answers) {
      expect(status).toBe(503);
      expect(body.checks?.['database']?.ready).toBe(false);
    }
    expect((await fetch(`${folder.url}hub/health`)).status).toBe(200);
    hub.signal('SIGTERM');
    await hub.exited;
  });
});

describe.skipIf(!hasRedis())('a hub with Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => redis[Symbol.asyncDispose]());

  test('is not ready while that is frozen or away, and is again by itself', async () => {
    await using hub = await createTestHub({ Hub: { keyv_url: redis.url } });
    expect((await readinessOf(hub.url)).status).toBe(200);
    redis.freeze();
    await until(async () => (await readinessOf(hub.url)).status === 503, 'it is not ready');
    const { body } = await readinessOf(hub.url, adminToken);
    expect(body.checks).toMatchObject({ database: { ready: true }, store: { ready: false } });
    redis.thaw();
    await until(async () => (await readinessOf(hub.url)).status === 200, 'it is ready again');
    expect(hub.logLines.filter(({ msg }) => msg === 'hub ready again')).toHaveLength(1);
  });
});
