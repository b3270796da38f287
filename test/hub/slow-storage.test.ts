import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { hasPostgres } from '../support/postgres.ts';
import { hasRedis, useRedis } from '../support/redis.ts';
import { adminToken } from '../support/server-hub.ts';
import { type SilentRelay, startSilentRelay } from '../support/silent-relay.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

/** In each direction. */
const delayMs = 150;
/** Longer than an instance keeps its lease without a renewal. */
const observedMs = 12_000;

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

async function slowWay(address: string): Promise<{ relay: SilentRelay; url: string }> {
  const url = new URL(address);
  const relay = await startSilentRelay({ host: url.hostname, port: Number(url.port) });
  opened.push(relay);
  url.port = String(relay.port);
  return { relay, url: url.href };
}

async function startHub(Hub: Readonly<Record<string, string>>): Promise<TestHub> {
  const hub = await createTestHub({ Hub });
  opened.push(hub);
  return hub;
}

describe.skipIf(!hasPostgres())('a hub with a slow way to PostgreSQL', () => {
  const cluster = usePostgres();

  test('is a member like any other: it writes, keeps its lease and hears of changes', async () => {
    const database_url = await cluster().createDatabase();
    const { relay, url } = await slowWay(database_url);
    const near = await startHub({ database_url });
    const far = await startHub({ database_url: url });
    relay.delay(delayMs);
    const sinceMs = performance.now();
    for (let count = 0; performance.now() - sinceMs < observedMs; count += 1) {
      const made = await far.api(`/users/user-${count}`, adminToken, { method: 'POST' });
      expect(made.status).toBe(201);
      expect((await near.api(`/users/user-${count}`, adminToken)).status).toBe(200);
    }
    expect((await fetch(`${far.url}hub/ready`)).status).toBe(200);
    const browser = await near.logIn('user-0');
    expect((await browser.request(`${far.url}hub/home`)).status).toBe(200);
    const lost = far.logLines.filter(({ msg }) => /lost/.test(String(msg)));
    expect(lost).toEqual([]);
  });
});

describe.skipIf(!hasRedis())('a hub with a slow way to Redis', () => {
  const redis = useRedis();

  test('lets people in and out as ever', async () => {
    const { relay, url } = await slowWay(redis().url);
    const hub = await startHub({ keyv_url: url });
    relay.delay(delayMs);
    const browser = await hub.logIn('alice');
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
    expect((await fetch(`${hub.url}hub/ready`)).status).toBe(200);
    await browser.request(`${hub.url}hub/logout`);
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);
  });
});
