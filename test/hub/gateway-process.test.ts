import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { edgeService, ownGatewayToken, startGateway } from '../support/gateway-process.ts';
import { spawnHubProcess } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  serverPath,
  startServer,
  tokenOf,
  untilServer,
} from '../support/server-hub.ts';
import { managedService, untilState, usersOpenServices } from '../support/services.ts';
import { submitLogin, type TestHub, until } from '../support/test-hub.ts';

/** A hub with a guarded service, an open one and users who have servers with a door. */
async function createWorld(Hub: Record<string, unknown> = {}): Promise<TestHub> {
  const hub = await createServerHub({
    Hub: {
      // Where the gateway listens; what the hub itself listens on is never asked.
      public_url: `http://127.0.0.1:${await freePort()}/`,
      ...Hub,
      load_roles: [...usersOpenServices, ...edgeService.load_roles],
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
        await managedService('open', 'fixtures/apps/gateway-app.cjs', { access: 'public' }),
        ...edgeService.services,
      ],
    },
    Spawner: { cmd: fixtureApp('gateway-app'), access: 'server' },
  });
  await untilState(hub, 'app', 'ready');
  await untilState(hub, 'open', 'ready');
  return hub;
}

async function startServerOf(hub: TestHub, user: string): Promise<void> {
  await hub.api(`/users/${user}`, adminToken, { method: 'POST' });
  await startServer(hub, serverPath(user));
  await untilServer(hub, serverPath(user), ({ ready }) => ready, `${user}'s server is ready`);
}

async function logInAt(url: string, userName: string): Promise<FakeBrowser> {
  const browser = new FakeBrowser();
  expect((await submitLogin(browser, url, userName, 'test')).status).toBe(302);
  return browser;
}

async function openSocket(url: string, headers: Record<string, string>): Promise<WebSocket> {
  const socket = new WebSocket(url.replace('http', 'ws'), { headers });
  await once(socket, 'open');
  return socket;
}

async function echo(socket: WebSocket, text: string): Promise<string> {
  const answered = new Promise<string>((resolve) => {
    socket.on('message', (data) => {
      if (String(data) === text) resolve(text);
    });
  });
  socket.send(text);
  return await answered;
}

/** What the app says of a request. */
interface Echo {
  readonly headers: Readonly<Record<string, string>>;
}

/** Where the hub keeps what it knows. */
type Storage = () => Promise<Readonly<Record<string, string>>>;

test('a gateway goes on asking a hub that is about to start', async () => {
  let asked = 0;
  await using hub = await startUpstream((_req, res) => {
    asked += 1;
    res.writeHead(asked > 2 ? 401 : 503).end();
  });
  const args = ['gateway', '--hub', hub.url, '--bind', `http://127.0.0.1:${await freePort()}/`];
  await using gateway = spawnHubProcess(args, {
    cwd: tmpdir(),
    env: { HUB_GATEWAY_TOKEN: ownGatewayToken },
  });
  expect(await gateway.exited).toBe(1);
  expect(gateway.stderr()).toContain('the hub refuses the token');
  expect(asked).toBe(3);
});

describe('a gateway process of a hub on SQLite', () => declareTests(async () => ({})));

describe.skipIf(!hasPostgres())('a gateway process of a hub on PostgreSQL', () => {
  const cluster = usePostgres();
  declareTests(async () => ({ database_url: await cluster().createDatabase() }));
});

function declareTests(storage: Storage): void {
  test('a gateway process serves the hub, its services and servers, and their WebSockets', async () => {
    await using hub = await createWorld(await storage());
    await startServerOf(hub, 'alice');
    await using gateway = await startGateway(hub);
    const { url } = gateway;

    expect((await fetch(`${url}services/open/`)).status).toBe(200);
    const browser = await logInAt(url, 'alice');
    expect((await browser.request(`${url}hub/home`)).status).toBe(200);

    const guarded = await browser.open(`${url}services/app/`);
    expect([guarded.status, JSON.parse(guarded.body).headers['x-hub-user']]).toEqual([
      200,
      'alice',
    ]);
    expect((await browser.request(`${url}user/alice/`)).status).toBe(200);
    const token = await tokenOf(hub, 'alice');
    const headers = { authorization: `token ${token}` };
    const info = JSON.stringify({ user_info: { display_name: 'Alice' } });
    await hub.api('/users/alice', adminToken, { method: 'PATCH', body: info });
    const reported = await fetch(`${url}services/app/`, { headers });
    expect([
      reported.status,
      ((await reported.json()) as Echo).headers['x-hub-display-name'],
    ]).toEqual([200, 'Alice']);
    expect((await fetch(`${url}services/app/`)).status).toBe(401);
    expect(
      (await fetch(`${url}user/alice/`, { headers: { authorization: 'token no' } })).status,
    ).toBe(200);

    const cookie = browser.cookieHeader(`${url}user/alice/`);
    const socket = await openSocket(`${url}user/alice/socket`, {
      cookie,
      origin: url.slice(0, -1),
    });
    expect(await echo(socket, 'hello')).toBe('hello');
    socket.close();
    // None of it went through the hub.
    const lines = hub.logLines.filter(({ msg }) => msg === 'forwarded');
    expect(lines).toEqual([]);
    expect(gateway.logged(/^forwarded$/).length).toBeGreaterThan(3);
  });

  test('routes that begin and end while it runs are those of the hub', async () => {
    await using hub = await createWorld(await storage());
    await using gateway = await startGateway(hub);
    const browser = await logInAt(gateway.url, 'alice');
    await startServerOf(hub, 'alice');
    expect((await browser.request(`${gateway.url}user/alice/`)).status).toBe(200);
    await hub.api(serverPath('alice'), adminToken, { method: 'DELETE' });
    await until(
      async () => (await browser.request(`${gateway.url}user/alice/`)).status !== 200,
      'the server is gone at the gateway too',
    );
  });

  test('a logout, a revoked token and a role taken away end WebSockets', async () => {
    await using hub = await createWorld(await storage());
    await createUsers(hub, 'alice', 'bob', 'carol');
    await using gateway = await startGateway(hub);
    const { url } = gateway;
    const origin = url.slice(0, -1);
    const alice = await logInAt(url, 'alice');
    await alice.open(`${url}services/app/`);
    const ofAlice = await openSocket(`${url}services/app/socket`, {
      cookie: alice.cookieHeader(`${url}services/app/`),
      origin,
    });
    const authorization = `token ${await tokenOf(hub, 'bob')}`;
    const ofBob = await openSocket(`${url}services/app/socket`, { authorization });
    const staying = await openSocket(`${url}services/app/socket`, {
      authorization: `token ${await tokenOf(hub, 'carol')}`,
    });

    const aliceClosed = once(ofAlice, 'close');
    await alice.request(`${url}hub/logout`);
    await aliceClosed;
    expect((await alice.request(`${url}services/app/`)).status).not.toBe(200);

    const tokens = (await (await hub.api('/users/bob/tokens', adminToken)).json()) as {
      api_tokens: { id: string }[];
    };
    const bobClosed = once(ofBob, 'close');
    await hub.api(`/users/bob/tokens/${tokens.api_tokens[0]?.id}`, adminToken, {
      method: 'DELETE',
    });
    await bobClosed;
    expect((await fetch(`${url}services/app/`, { headers: { authorization } })).status).toBe(401);
    expect(await echo(staying, 'still there')).toBe('still there');
    staying.close();
  });

  test('the service of an operator may be a gateway; what only the hub reaches goes through it', async () => {
    await using hub = await createWorld(await storage());
    await using gateway = await startGateway(hub, { token: 'token-of-the-edge' });
    const browser = await logInAt(gateway.url, 'alice');
    expect((await browser.open(`${gateway.url}services/app/`)).status).toBe(200);
    expect(hub.logLines.some(({ msg }) => msg === 'forwarded')).toBe(true);
    const socket = await openSocket(`${gateway.url}services/open/socket`, {});
    expect(await echo(socket, 'through the hub')).toBe('through the hub');
    socket.close();
  });

  test('the hub and its limits know the address of the client, not that of the gateway', async () => {
    await using hub = await createWorld({ ...(await storage()), trusted_proxies: ['127.0.0.1'] });
    await using gateway = await startGateway(hub);
    const browser = new FakeBrowser();
    await browser.request(`${gateway.url}hub/login`, {
      headers: { 'x-forwarded-for': '203.0.113.7' },
    });
    const line = () => hub.logLines.find(({ url }) => url === '/hub/login');
    await until(() => line() !== undefined, 'the request is logged');
    expect(line()?.['address']).toBe('203.0.113.7');
  });
}
