import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import WebSocket from 'ws';
import { createHubFolder, type HubFolder, type HubProcess } from '../support/hub-process.ts';
import { adminToken, fixtureApp, isAlive, type ServerModel } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

const Spawner = { cmd: fixtureApp('gateway-app'), access: 'gateway' };

async function api(folder: HubFolder, path: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(folder.apiUrl + path, {
    ...init,
    headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
  });
}

/** Starts the server of a user; gives the user's token. */
async function startServerOf(folder: HubFolder, user: string): Promise<string> {
  await api(folder, '/users', { method: 'POST', body: JSON.stringify({ usernames: [user] }) });
  await api(folder, `/users/${user}/server`, { method: 'POST' });
  await until(async () => {
    const answer = await api(folder, `/users/${user}/server`);
    return ((await answer.json()) as ServerModel).ready;
  }, 'the server is ready');
  const answer = await api(folder, `/users/${user}/tokens`, { method: 'POST', body: '{}' });
  return ((await answer.json()) as { token: string }).token;
}

const gatewayPids = (hub: HubProcess): number[] =>
  [...hub.logged(/^gateway started$/)].map(({ pid, gateway }) =>
    Number(String(gateway).split('-').at(-1) ?? pid),
  );

/** The hub alone has ended; its gateways may still hold its standard error. */
async function untilGone(pid: number): Promise<void> {
  await until(() => !isAlive(pid), `process ${pid} has ended`);
}

async function openSockets(url: string, token: string, count: number): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  for (let index = 0; index < count; index += 1) {
    const socket = new WebSocket(url.replace('http', 'ws'), {
      headers: { authorization: `token ${token}` },
    });
    await once(socket, 'open');
    sockets.push(socket);
  }
  return sockets;
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

/** How long a gateway lets requests wait for a hub that is away. */
const patienceMs = 10_000;

/** Asks for a page again and again, each time on a new connection and on a kept one. */
function ask(url: string, token?: string) {
  const failures: string[] = [];
  const kept = new Agent({ keepAlive: true, maxSockets: 2 });
  let isOver = false;
  let count = 0;
  async function once_(agent: Agent | false): Promise<void> {
    const sinceMs = performance.now();
    const sent = request(url, {
      agent,
      headers: token === undefined ? {} : { authorization: `token ${token}` },
    });
    sent.end();
    const [answer] = await once(sent, 'response');
    answer.resume();
    await once(answer, 'end');
    // On a busy machine the hub may need longer to come back than it is waited for.
    const hasWaited = performance.now() - sinceMs >= patienceMs;
    if (answer.statusCode !== 200 && !hasWaited) failures.push(`${url}: ${answer.statusCode}`);
    count += 1;
  }
  const running = (async () => {
    for (let turn = 0; !isOver; turn += 1) {
      // What is asked without a pause takes the processor from the hub that starts.
      await delay(20);
      await once_(turn % 2 === 0 ? kept : false).catch((error: unknown) =>
        failures.push(`${url}: ${String(error)}`),
      );
    }
  })();
  return {
    count: () => count,
    async end(): Promise<string[]> {
      isOver = true;
      await running;
      kept.destroy();
      return failures;
    },
  };
}

test('a restart of the hub drops no WebSocket and fails no request', async () => {
  await using folder = await createHubFolder({
    Hub: { gateways: 2, gateway_linger: 300 },
    Spawner,
  });
  const first = await folder.start();
  const pids = gatewayPids(first);
  expect(pids).toHaveLength(2);
  const token = await startServerOf(folder, 'alice');
  const server = `${folder.url}user/alice/`;
  const sockets = await openSockets(`${server}socket`, token, 6);
  const dropped: number[] = [];
  for (const socket of sockets) socket.on('close', (code) => dropped.push(code));
  const streams = [ask(server, token), ask(server, token), ask(`${folder.url}hub/health`)];
  await until(() => streams.every(({ count }) => count() > 20), 'requests are under way');

  first.signal('SIGTERM');
  await untilGone(first.pid);
  const before = streams.map(({ count }) => count());
  const second = await folder.start();
  await until(
    () => streams.every(({ count }, index) => count() > (before[index] ?? 0) + 20),
    'requests go on',
  );
  const failures = (await Promise.all(streams.map((stream) => stream.end()))).flat();
  expect([failures, dropped]).toEqual([[], []]);
  for (const socket of sockets) expect(await echo(socket, 'still here')).toBe('still here');
  expect(second.logged(/^gateway of earlier hub kept running$/)).toHaveLength(2);
  expect(gatewayPids(second)).toEqual([]);
  expect(pids.map(isAlive)).toEqual([true, true]);

  for (const socket of sockets) socket.terminate();
  await api(folder, '/users/alice/server', { method: 'DELETE' });
  second.signal('SIGINT');
  await untilGone(second.pid);
  expect(pids.map(isAlive)).toEqual([false, false]);
});

test('gateways of other settings are replaced, and end with their last connection', async () => {
  await using folder = await createHubFolder({
    Hub: { gateways: 1, gateway_linger: 300 },
    Spawner,
  });
  const first = await folder.start();
  const [former = 0] = gatewayPids(first);
  const token = await startServerOf(folder, 'alice');
  const [socket] = await openSockets(`${folder.url}user/alice/socket`, token, 1);
  first.signal('SIGTERM');
  await untilGone(first.pid);
  await folder.configure({
    Hub: { gateways: 1, gateway_linger: 300, shutdown_timeout: 29 },
    Spawner,
  });
  const second = await folder.start();
  const [latter = 0] = gatewayPids(second);
  expect(latter).not.toBe(former);
  expect((await fetch(`${folder.url}hub/login`)).status).toBe(200);
  expect(isAlive(former)).toBe(true);
  if (socket === undefined) throw new Error('there is no socket');
  expect(await echo(socket, 'still here')).toBe('still here');
  socket.close();
  await untilGone(former);
  expect(isAlive(latter)).toBe(true);
  await api(folder, '/users/alice/server', { method: 'DELETE' });
  const stopped = await folder.command(['stop']);
  expect([stopped.code, stopped.stdout]).toEqual([0, 'The hub has stopped.\n']);
  expect(isAlive(latter)).toBe(false);
});

test('a gateway that dies is started again; all end when no hub comes back in time', async () => {
  await using folder = await createHubFolder({ Hub: { gateways: 1, gateway_linger: 3 } });
  const hub = await folder.start();
  const [dying = 0] = gatewayPids(hub);
  process.kill(dying, 'SIGKILL');
  await until(() => gatewayPids(hub).length === 2, 'another gateway is there');
  const [, next = 0] = gatewayPids(hub);
  expect((await fetch(`${folder.url}hub/health`)).status).toBe(200);
  hub.signal('SIGTERM');
  await untilGone(hub.pid);
  await untilGone(next);
});

test('while the hub is away, visitors who were admitted stay so for a time, and WebSockets for longer', async () => {
  await using folder = await createHubFolder({
    Hub: { gateways: 1, gateway_linger: 60 },
    Proxy: { max_staleness: 15 },
    Spawner,
  });
  const hub = await folder.start();
  const [gateway = 0] = gatewayPids(hub);
  await api(folder, '/announcement', {
    method: 'PUT',
    body: JSON.stringify({ text: 'A new disk on Friday.' }),
  });
  const token = await startServerOf(folder, 'alice');
  const server = `${folder.url}user/alice/`;
  const headers = { authorization: `token ${token}` };
  const [socket] = await openSockets(`${server}socket`, token, 1);
  if (socket === undefined) throw new Error('there is no socket');
  expect((await fetch(server, { headers })).status).toBe(200);
  hub.signal('SIGKILL');
  await untilGone(hub.pid);
  let isHubGivenUp = false;
  const forHub = fetch(`${folder.url}hub/health`).finally(() => {
    isHubGivenUp = true;
  });
  expect((await fetch(server, { headers })).status).toBe(200);
  // It may come back.
  expect(isHubGivenUp).toBe(false);
  await until(
    async () => (await fetch(server, { headers })).status === 503,
    'what is known of visitors is too old',
  );
  const page = await fetch(server, { headers: { ...headers, accept: 'text/html' } });
  expect([page.status, await page.text()]).toEqual([
    503,
    expect.stringContaining('A new disk on Friday.'),
  ]);
  expect((await forHub).status).toBe(503);
  expect(await echo(socket, 'still here')).toBe('still here');

  const next = await folder.start();
  expect((await fetch(server, { headers })).status).toBe(200);
  expect(isAlive(gateway)).toBe(true);
  socket.close();
  await api(folder, '/users/alice/server', { method: 'DELETE' });
  next.signal('SIGINT');
  await untilGone(next.pid);
});

test('the hub shows what its gateways forwarded, also of one that has ended', async () => {
  await using folder = await createHubFolder({ Hub: { gateways: 2, gateway_linger: 5 }, Spawner });
  const hub = await folder.start();
  const token = await startServerOf(folder, 'alice');
  // To read the user has the hub store what it knows of activity.
  const lastActivity = async () => {
    const answer = await api(folder, '/users/alice');
    const { servers } = (await answer.json()) as { readonly servers: Record<string, ServerModel> };
    return Date.parse(servers['']?.last_activity ?? '');
  };
  const beganAtMs = Date.now();
  for (let count = 0; count < 20; count += 1) {
    await fetch(`${folder.url}user/alice/`, {
      headers: { authorization: `token ${token}`, connection: 'close' },
    });
  }
  const metric = async (line: RegExp) => {
    const answer = await fetch(`${folder.url}hub/metrics`, {
      headers: { authorization: `token ${adminToken}` },
    });
    return Number(line.exec(await answer.text())?.[1] ?? 0);
  };
  const forwarded = () =>
    metric(/^hub_forwarded_requests_total\{route_kind="server".*code="200".*\} (\d+)$/m);
  expect(await metric(/^hub_gateways (\d+)$/m)).toBe(2);
  await until(async () => (await forwarded()) === 20, 'the hub knows of all of them');
  const [socket] = await openSockets(`${folder.url}user/alice/socket`, token, 1);
  const asked = hub.logged(/^request$/).map(({ url }) => String(url));
  expect(asked.filter((url) => url.includes('/api/gateway/'))).toEqual([]);
  const reported = async (figure: 'requests' | 'web_sockets' | 'connections') => {
    const answer = await api(folder, '/instances');
    const { instances } = (await answer.json()) as {
      instances: { gateways: Partial<Record<typeof figure, number>>[] }[];
    };
    return instances[0]?.gateways.reduce((sum, gateway) => sum + (gateway[figure] ?? 0), 0);
  };
  await until(async () => (await reported('web_sockets')) === 1, 'the hub knows of the WebSocket');
  expect(await reported('requests')).toBe(20);
  expect(await reported('connections')).toBeGreaterThanOrEqual(1);
  socket?.close();
  const [first = 0] = gatewayPids(hub);
  process.kill(first, 'SIGTERM');
  await untilGone(first);
  expect(await forwarded()).toBe(20);
  await until(async () => (await lastActivity()) >= beganAtMs, 'the server was active');
  await api(folder, '/users/alice/server', { method: 'DELETE' });
  hub.signal('SIGINT');
  await untilGone(hub.pid);
});
