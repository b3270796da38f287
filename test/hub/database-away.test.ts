import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { useOwnPostgres, usePostgres } from '../support/databases.ts';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { hasPostgres } from '../support/postgres.ts';
import { hasRedis, useRedis } from '../support/redis.ts';
import { openWithConsent, untilState, usersOpenServices } from '../support/services.ts';
import { startSilentRelay } from '../support/silent-relay.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const maxStalenessSeconds = 8;
const adminToken = 'admin-service-token';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

/** An app that is no child of the hub: one without its lease gives up what it owns. */
async function startApp(): Promise<string> {
  const server = createServer((_request, response) => response.end('the app'));
  const sockets = new WebSocketServer({ server });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.push({
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate();
      server.close();
      server.closeAllConnections();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startHub(storage: Readonly<Record<string, string>>): Promise<TestHub> {
  const url = await startApp();
  const hub = await createTestHub({
    Hub: {
      ...storage,
      authenticate_prometheus: false,
      load_roles: usersOpenServices,
      services: [
        { name: 'app', url, access: 'gateway' },
        { name: 'open', url, access: 'public' },
      ],
    },
    Proxy: { max_staleness: maxStalenessSeconds },
  });
  opened.push(hub);
  await untilState(hub, 'app', 'ready');
  await untilState(hub, 'open', 'ready');
  return hub;
}

/** A browser that has opened the guarded service, and a WebSocket to it. */
async function visitor(hub: TestHub, userName: string) {
  const appUrl = `${hub.url}services/app/`;
  const browser = await hub.logIn(userName);
  expect((await openWithConsent(browser, appUrl)).status).toBe(200);
  const visit = () => statusOf(browser, appUrl);
  expect(await visit()).toBe(200);
  expect(await visit()).toBe(200);
  const headers = { cookie: browser.cookieHeader(appUrl), origin: new URL(hub.url).origin };
  const socket = new WebSocket(`${appUrl.replace('http', 'ws')}socket`, { headers });
  await once(socket, 'open');
  return { browser, visit, socket };
}

async function statusOf(browser: FakeBrowser, url: string): Promise<number> {
  return (await browser.request(url, { headers: { 'sec-fetch-mode': 'cors' } })).status;
}

const figure = async (hub: TestHub, name: string) => {
  const text = await (await fetch(`${hub.url}hub/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
};

describe.skipIf(!hasPostgres())('while PostgreSQL is away', () => {
  const cluster = useOwnPostgres();

  test.each([
    { fault: 'killed', leave: () => cluster().stop(), back: () => cluster().start() },
    {
      fault: 'frozen',
      leave: async () => cluster().freeze(),
      back: async () => cluster().thaw(),
    },
  ])('($fault) who was let in stays so for max_staleness, and no longer', async (fault) => {
    const hub = await startHub({ database_url: await cluster().createDatabase() });
    const { visit, socket } = await visitor(hub, 'alice');
    const isOpen = () => socket.readyState === WebSocket.OPEN;

    await fault.leave();
    try {
      let status = 200;
      while (status === 200) status = await visit();
      expect(status).toBe(503);
      expect(await figure(hub, 'hub_change_feed_age_seconds')).toBeGreaterThan(maxStalenessSeconds);
      expect(await visit()).toBe(503);
      expect((await fetch(`${hub.url}services/open/`)).status).toBe(200);
      expect((await fetch(`${hub.url}hub/health`)).status).toBe(200);
      expect(isOpen()).toBe(true);
    } finally {
      await fault.back();
    }
    await until(async () => (await visit()) === 200, 'guarded requests are answered again');
    expect(isOpen()).toBe(true);
    expect(await figure(hub, 'hub_change_feed_losses_total')).toBeGreaterThan(0);
  });

  test('what was changed meanwhile, on what is a primary again, is known when it is back', async () => {
    const database_url = await cluster().createDatabase();
    const hub = await startHub({ database_url });
    const { visit, socket } = await visitor(hub, 'alice');
    const other = await createTestHub({ Hub: { database_url } });
    opened.push(other);
    await cluster().stop();
    await cluster().start();
    await until(async () => {
      const answer = await other.api('/users/alice', adminToken, { method: 'DELETE' });
      return answer.status === 204;
    }, 'the other hub deletes the user');
    const closed = socket.readyState === WebSocket.CLOSED || once(socket, 'close');
    await closed;
    await until(async () => (await visit()) === 401, 'the user is refused here');
  });

  test('a hub at rest asks it at most 5 times a second', async () => {
    const url = new URL(await cluster().createDatabase());
    const relay = await startSilentRelay(cluster());
    opened.push(relay);
    url.port = String(relay.port);
    const hub = await startHub({ database_url: url.href });
    const { socket } = await visitor(hub, 'alice');
    const [before, since] = [relay.sentCount, performance.now()];
    await until(() => relay.sentCount - before >= 15, 'the hub asked 15 times');
    expect(performance.now() - since).toBeGreaterThan(3_000);
    expect(socket.readyState).toBe(WebSocket.OPEN);
  });
});

describe.skipIf(!hasPostgres() || !hasRedis())('while Redis is away', () => {
  const cluster = usePostgres();
  const redis = useRedis();

  test.each([
    { fault: 'killed', leave: () => redis().stop(), back: () => redis().start() },
    { fault: 'frozen', leave: async () => redis().freeze(), back: async () => redis().thaw() },
  ])('($fault) guarded services and the API go on, and pages come back', async (fault) => {
    const hub = await startHub({
      database_url: await cluster().createDatabase(),
      keyv_url: redis().url,
    });
    const { browser, visit, socket } = await visitor(hub, 'alice');
    await fault.leave();
    try {
      expect(await statusOf(browser, `${hub.url}hub/home`)).toBe(503);
      expect(await visit()).toBe(200);
      expect((await hub.api('/users/alice', adminToken)).status).toBe(200);
      expect(socket.readyState).toBe(WebSocket.OPEN);
    } finally {
      await fault.back();
    }
    await until(
      async () => (await hub.logIn('bob').catch(() => undefined)) !== undefined,
      'users can log in again',
    );
    expect(await visit()).toBe(200);
  });
});
