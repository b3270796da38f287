import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createExternalHub, type ExternalHub } from '../support/external-hub.ts';
import type { FakeBrowser } from '../support/fake-browser.ts';
import {
  adminToken,
  fixtureApp,
  getServer,
  serverPath,
  startServer,
  startUntilReady,
  untilServer,
} from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

const often = { auth_refresh_age: 0.2 };

async function isLoggedIn({ hub }: ExternalHub, browser: FakeBrowser): Promise<boolean> {
  return (await browser.request(`${hub.url}hub/home`)).status === 200;
}

async function groupsOf({ hub }: ExternalHub, name: string): Promise<string[]> {
  const user = (await (await hub.api(`/users/${name}`, adminToken)).json()) as { groups: string[] };
  return user.groups;
}

/** A token that the user made, which belongs to no login. */
async function ownToken({ hub }: ExternalHub, name: string): Promise<string> {
  const answer = await hub.api(`/users/${name}/tokens`, adminToken, {
    method: 'POST',
    body: JSON.stringify({ note: 'script' }),
  });
  return ((await answer.json()) as { token: string }).token;
}

test('groups and roles that change at the provider change here while the login is used', async () => {
  await using external = await createExternalHub({
    Authenticator: { ...often, manage_groups: true, manage_roles: true },
    Hub: { load_roles: [{ name: 'reader', scopes: ['read:users'] }] },
    options: {
      scope: 'openid profile email groups',
      groups_claim: 'groups',
      roles_claim: 'realm_access.roles',
      admin_groups: ['bosses'],
    },
  });
  const { provider, hub } = external;
  await provider.setAccount('alice', {
    claims: { groups: ['staff', 'bosses'], realm_access: { roles: ['reader'] } },
  });
  const browser = await external.logIn('alice');
  expect(await groupsOf(external, 'alice')).toEqual(['bosses', 'staff']);
  const model = async () =>
    (await (await hub.api('/users/alice', adminToken)).json()) as {
      admin: boolean;
      roles: string[];
    };
  expect(await model()).toMatchObject({ admin: true, roles: expect.arrayContaining(['reader']) });

  await provider.setAccount('alice', {
    claims: { groups: ['staff'], realm_access: { roles: [] } },
  });
  await until(async () => {
    expect(await isLoggedIn(external, browser)).toBe(true);
    return !(await model()).admin;
  }, 'the change takes effect');
  expect(await groupsOf(external, 'alice')).toEqual(['staff']);
  expect((await model()).roles).not.toContain('reader');
});

test('who is disabled at the provider loses session and tokens', async () => {
  await using external = await createExternalHub({ Authenticator: often });
  const { hub, provider } = external;
  const browser = await external.logIn('alice');
  const script = await ownToken(external, 'alice');
  expect((await hub.api('/user', script)).status).toBe(200);

  await provider.setAccount('alice', { isDisabled: true });
  await until(async () => !(await isLoggedIn(external, browser)), 'the login has ended');
  expect((await hub.api('/user', script)).status).toBe(403);
  expect(external.log()).toContain('logins ended at provider');
  // A token that is refused does not make the hub ask the provider again and again.
  const asked = await provider.requestsTo('/token');
  for (let index = 0; index < 5; index += 1) await hub.api('/user', script);
  expect(await provider.requestsTo('/token')).toBe(asked);

  await provider.setAccount('alice', {});
  await external.logIn('alice', browser);
  expect((await hub.api('/user', script)).status).toBe(200);
});

test('an open WebSocket ends with the account at the provider, without any other request', async () => {
  await using sockets = await listenForWebSockets();
  await using external = await createExternalHub({
    Authenticator: often,
    Hub: {
      load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
      services: [{ name: 'live', url: sockets.url, access: 'gateway', oauth_no_confirm: true }],
    },
  });
  const { hub, provider } = external;
  const browser = await external.logIn('alice');
  const target = `${hub.url}services/live/`;
  expect((await browser.open(target)).status).toBe(200);
  const socket = new WebSocket(target.replace('http', 'ws'), {
    headers: { cookie: browser.cookieHeader(target), origin: new URL(hub.url).origin },
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  await once(socket, 'open');
  await provider.setAccount('alice', { isDisabled: true });
  // Connections are checked now and then, and after every change: these spare the waiting.
  let changes = 0;
  await until(async () => {
    await hub.api(`/groups/unrelated-${changes++}`, adminToken, { method: 'POST' });
    return socket.readyState === WebSocket.CLOSED;
  }, 'the WebSocket is closed');
  expect(await closed).toBe(1008);
  expect((await browser.request(target)).status).toBe(302);
});

/** A web app that answers pages and takes WebSockets. */
async function listenForWebSockets(): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((_req, res) => res.end('a page'));
  const webSockets = new WebSocketServer({ server });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      webSockets.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

test('a rotating refresh token is used once even when twenty requests arrive together', async () => {
  await using external = await createExternalHub(
    { Authenticator: { auth_refresh_age: 1 }, options: { scope: 'openid profile' } },
    { accessTokenSeconds: 1 },
  );
  const { hub, provider } = external;
  const browser = await external.logIn('alice');
  for (let round = 1; round <= 3; round += 1) {
    const before = await provider.requestsTo('/token');
    await until(async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => browser.request(`${hub.url}hub/home`)),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
      return (await provider.requestsTo('/token')) > before;
    }, 'the access token had to be refreshed');
    expect(await provider.requestsTo('/token')).toBe(before + 1);
  }
});

test('a login survives a provider that fails, for refresh_grace', async () => {
  await using external = await createExternalHub({
    Authenticator: { auth_refresh_age: 0.2, refresh_grace: 3 },
  });
  const { provider } = external;
  const browser = await external.logIn('alice');
  await provider.setBroken(true);
  await until(
    () =>
      external.log().includes('login not confirmed by provider') ||
      isLoggedIn(external, browser).then(() => false),
    'the provider was asked',
  );
  expect(await isLoggedIn(external, browser)).toBe(true);
  await until(async () => !(await isLoggedIn(external, browser)), 'the grace is over');
  await provider.setBroken(false);
  await external.logIn('alice', browser);
  expect(await isLoggedIn(external, browser)).toBe(true);
});

test('before a server starts the provider is asked, when refresh_pre_spawn says so', async () => {
  await using external = await createExternalHub({
    Authenticator: { refresh_pre_spawn: true, auth_refresh_age: 0 },
    Hub: { cleanup_servers: true },
    Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
  });
  const { hub, provider } = external;
  const browser = await external.logIn('alice');
  await provider.setAccount('alice', { isDisabled: true });
  expect(await isLoggedIn(external, browser)).toBe(true);
  await startServer(hub, serverPath('alice'));
  await untilServer(
    hub,
    serverPath('alice'),
    ({ stopped, failure }) => stopped && failure !== null,
    'the start was refused',
  );
  expect(await isLoggedIn(external, browser)).toBe(false);
});

test('before a server stops the provider is asked, when refresh_pre_stop says so', async () => {
  await using external = await createExternalHub({
    Authenticator: { refresh_pre_stop: true, auth_refresh_age: 0 },
    Hub: { cleanup_servers: true },
    Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
  });
  const { hub, provider } = external;
  const browser = await external.logIn('alice');
  await startUntilReady(hub, serverPath('alice'));
  const asked = await provider.requestsTo('/me');
  const own = await ownToken(external, 'alice');
  await provider.setAccount('alice', { isDisabled: true });

  const refused = await hub.api(serverPath('alice'), own, { method: 'DELETE' });
  expect(refused.status).toBe(403);
  expect(await refused.json()).toMatchObject({ hint: 'Log in again, then try once more.' });
  expect(await provider.requestsTo('/me')).toBeGreaterThan(asked);
  expect((await getServer(hub, serverPath('alice'))).ready).toBe(true);
  expect(await isLoggedIn(external, browser)).toBe(false);
  // Others can stop it: idle servers of people who left would run for ever.
  const stopped = await hub.api(serverPath('alice'), adminToken, { method: 'DELETE' });
  expect(stopped.status).toBe(204);
});

test('a server that reports for a disabled user does not keep asking the provider', async () => {
  await using external = await createExternalHub({ Authenticator: often });
  const { hub, provider } = external;
  await external.logIn('alice');
  const before = await provider.requestsTo('/me');
  await hub.api('/users/alice', adminToken);
  expect(await provider.requestsTo('/me')).toBe(before);
});
