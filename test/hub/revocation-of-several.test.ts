import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken, fixtureApp, serverPath, startUntilReady } from '../support/server-hub.ts';
import { managedService } from '../support/services.ts';
import { type SilentRelay, startSilentRelay } from '../support/silent-relay.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

describe.skipIf(!hasPostgres())('what one of two hubs on PostgreSQL takes away', () => {
  const cluster = usePostgres();
  const stack = new AsyncDisposableStack();
  let here: TestHub;
  let there: TestHub;
  let relay: SilentRelay;
  /** The other hub, and a gateway process that follows it. */
  let serverGuards: readonly string[];

  beforeAll(async () => {
    const url = new URL(await cluster().createDatabase());
    relay = stack.use(await startSilentRelay(cluster()));
    const shared = {
      load_groups: [{ name: 'team' }],
      load_roles: [
        { name: 'user', scopes: ['self'] },
        { name: 'opens-services', scopes: ['access:services'], groups: ['team'] },
      ],
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
      ],
    };
    const Spawner = { cmd: fixtureApp('gateway-app'), access: 'gateway' };
    const Hub = { ...shared, allow_named_servers: true, cleanup_servers: true };
    here = stack.use(await createTestHub({ Hub: { ...Hub, database_url: url.href }, Spawner }));
    url.port = String(relay.port);
    there = stack.use(
      await createTestHub({
        Spawner,
        Hub: {
          ...Hub,
          database_url: url.href,
          // Of the gateway.
          public_url: `http://127.0.0.1:${await freePort()}/`,
        },
      }),
    );
    const gateway = stack.use(await startGateway(there));
    const { port } = there.hub.publicServer.address() as AddressInfo;
    serverGuards = [`http://127.0.0.1:${port}/`, gateway.url];
    for (const serverGuard of serverGuards) {
      await until(
        async () => (await fetch(`${serverGuard}services/app/`)).status === 401,
        'the service is reached',
      );
    }
  });
  afterAll(() => stack.disposeAsync());

  const administer = async (path: string, method: string, body?: object): Promise<unknown> => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const answer = await here.api(path, adminToken, init);
    expect([path, answer.ok]).toEqual([path, true]);
    return answer.status === 204 ? undefined : answer.json();
  };

  /** A token of a user who may open the service. */
  async function visitorOf(name: string): Promise<{ id: string; token: string }> {
    await administer(`/users/${name}`, 'POST');
    await administer('/groups/team/users', 'POST', { users: [name] });
    return (await administer(`/users/${name}/tokens`, 'POST', {})) as { id: string; token: string };
  }

  async function openAt(
    serverGuard: string,
    token: string,
    path = 'services/app/',
  ): Promise<WebSocket> {
    const socket = new WebSocket(`${serverGuard.replace('http', 'ws')}${path}socket`, {
      headers: { authorization: `token ${token}` },
    });
    await once(socket, 'open');
    return socket;
  }

  const losses: [string, (name: string, tokenId: string) => Promise<unknown>][] = [
    ['a role', (name) => administer('/groups/team/users', 'DELETE', { users: [name] })],
    ['the user', (name) => administer(`/users/${name}`, 'DELETE')],
    ['the token', (name, id) => administer(`/users/${name}/tokens/${id}`, 'DELETE')],
  ];

  test.each(
    losses.flatMap(([what, take]) =>
      ['heard', 'not heard'].map((how) => [what, how, take] as const),
    ),
  )(
    '(%s; the change is %s) closes WebSockets at the other hub and at its gateway',
    async (what, how, take) => {
      const name = `${what} ${how}`.replaceAll(' ', '-');
      const { id, token } = await visitorOf(name);
      const staying = await visitorOf(`${name}-stays`);
      const sockets = await Promise.all(
        serverGuards.map((serverGuard) => openAt(serverGuard, token)),
      );
      const others = await Promise.all(
        serverGuards.map((serverGuard) => openAt(serverGuard, staying.token)),
      );
      // The connection on which it would be told of it dies without a word.
      if (how === 'not heard') relay.silenceOpen('listen hub_changed');
      const closed = sockets.map((socket) => once(socket, 'close'));
      await take(name, id);
      await Promise.all(closed);
      for (const socket of others) {
        expect(socket.readyState).toBe(WebSocket.OPEN);
        socket.terminate();
      }
      const headers = { authorization: `token ${token}` };
      for (const serverGuard of serverGuards) {
        await until(
          async () =>
            [401, 403].includes((await fetch(`${serverGuard}services/app/`, { headers })).status),
          'requests are refused too',
        );
      }
    },
  );

  test('(a share) closes WebSockets at the other hub and at its gateway', async () => {
    for (const name of ['host', 'guest']) await administer(`/users/${name}`, 'POST');
    const { token } = (await administer('/users/guest/tokens', 'POST', {})) as { token: string };
    await startUntilReady(here, serverPath('host'));
    const headers = { authorization: `token ${token}` };
    const guest = { user: 'guest' };
    await administer('/shares/host/', 'POST', guest);
    for (const serverGuard of serverGuards) {
      await until(
        async () => (await fetch(`${serverGuard}user/host/`, { headers })).status === 200,
        'the shared server is open',
      );
    }
    const sockets = await Promise.all(
      serverGuards.map((serverGuard) => openAt(serverGuard, token, 'user/host/')),
    );
    const closed = sockets.map((socket) => once(socket, 'close'));
    await administer('/shares/host/', 'PATCH', guest);
    await Promise.all(closed);
    for (const serverGuard of serverGuards) {
      expect((await fetch(`${serverGuard}user/host/`, { headers })).status).toBe(403);
    }
  });

  test('(a shared server that is renamed or deleted) is known to the other hub', async () => {
    await administer('/users/visitor', 'POST');
    const { token } = (await administer('/users/visitor/tokens', 'POST', {})) as { token: string };
    const shown = async () => {
      const { scopes } = (await (await there.api('/user', token)).json()) as { scopes: string[] };
      return scopes.filter((scope) => scope.startsWith('access:servers!server='));
    };
    const becomes = (servers: readonly string[]) =>
      until(
        async () =>
          JSON.stringify(await shown()) ===
          JSON.stringify(servers.map((name) => `access:servers!server=visited/${name}`)),
        `the other hub knows of ${servers}`,
      );
    const path = (name: string) => serverPath('visited', name);
    await administer('/users/visited', 'POST');
    await administer(path('old'), 'PUT', {});
    await administer('/shares/visited/old', 'POST', { user: 'visitor' });
    await becomes(['old']);
    await administer(path('old'), 'PATCH', { name: 'new' });
    await becomes(['new']);
    await administer(path('new'), 'DELETE', { remove: true });
    await becomes([]);
  });
});
