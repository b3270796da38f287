import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import WebSocket from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import {
  createHubFolder,
  type HubFolder,
  type HubProcess,
  spawnHubProcess,
} from '../support/hub-process.ts';
import { adminToken, fixtureApp, isAlive, type ServerModel } from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { submitLogin, until } from '../support/test-hub.ts';

const page = readFileSync(join(projectDirectory, 'docs/how-to/gateways.md'), 'utf8');
const [onThisMachine, forOthers] = [...page.matchAll(/^```json\n(.*?)^```$/gms)].map(
  ([, text = '']) => JSON.parse(text) as { readonly Hub: Readonly<Record<string, unknown>> },
);
const [, command = ''] = /^```sh\n(hub gateway .*)\n```$/m.exec(page) ?? [];
const [, onSignal = ''] =
  /`(SIG\w+)`, which systemd and containers send, they keep running/.exec(page) ?? [];
const [, toEndAll = ''] = /To end the hub with its gateways, run `hub (\w+)`/.exec(page) ?? [];

const Spawner = { cmd: fixtureApp('gateway-app'), access: 'gateway' };

async function startServer({ apiUrl }: HubFolder, user: string): Promise<void> {
  const api = (path: string, init: RequestInit = {}) =>
    fetch(apiUrl + path, { ...init, headers: { authorization: `token ${adminToken}` } });
  await api(`/users/${user}`, { method: 'POST' });
  await api(`/users/${user}/server`, { method: 'POST' });
  await until(async () => {
    const answer = await api(`/users/${user}/server`);
    return answer.ok && ((await answer.json()) as ServerModel).ready;
  }, 'the server is ready');
}

async function logIn(url: string): Promise<FakeBrowser> {
  const browser = new FakeBrowser();
  await until(
    async () =>
      (await submitLogin(browser, url, 'ada', 'test').catch(() => undefined))?.status === 302,
    'ada logs in',
  );
  return browser;
}

async function openSocket(browser: FakeBrowser, url: string): Promise<WebSocket> {
  await browser.open(url);
  const headers = { cookie: browser.cookieHeader(url), origin: new URL(url).origin };
  const socket = new WebSocket(url.replace('http', 'ws'), { headers });
  await once(socket, 'open');
  return socket;
}

const gatewayPids = (hub: HubProcess) =>
  hub.logged(/^gateway started$/).map(({ gateway }) => Number(String(gateway).split('-').at(-1)));

test('gateways on the machine of the hub outlive it, as the page says, and end with hub stop', async () => {
  expect([onSignal, toEndAll], 'what the page says').toEqual(['SIGTERM', 'stop']);
  await using folder = await createHubFolder({ Hub: { ...onThisMachine?.Hub }, Spawner });
  const hub = await folder.start();
  const pids = gatewayPids(hub);
  expect(pids).toHaveLength(Number(onThisMachine?.Hub['gateways']));
  await startServer(folder, 'ada');
  const server = `${folder.url}user/ada/`;
  const browser = await logIn(folder.url);
  const socket = await openSocket(browser, server);

  hub.signal(onSignal as NodeJS.Signals);
  await until(() => !isAlive(hub.pid), 'the hub has ended');
  expect(pids.every(isAlive)).toBe(true);
  expect((await browser.request(server)).status).toBe(200);
  // Asked again where the next hub starts later than a request waits.
  const home = until(
    async () => (await browser.open(`${folder.url}hub/home`)).status === 200,
    'the page waited for the next hub',
  );
  const next = await folder.start();
  await home;
  // The next hub finds them.
  expect(gatewayPids(next)).toEqual([]);
  expect(socket.readyState).toBe(WebSocket.OPEN);

  expect(await folder.run([toEndAll])).toMatchObject({ code: 0 });
  await until(() => !pids.some(isAlive), 'the gateways have ended');
  expect(await next.exited).toBe(0);
});

test('a gateway on another machine serves what the hub serves, and ends for other settings', async () => {
  const port = await freePort();
  const publicUrl = `http://127.0.0.1:${port}/`;
  const token = 'token-of-the-edge-gateway';
  vi.stubEnv('EDGE_TOKEN', token);
  await using folder = await createHubFolder({
    Hub: { ...forOthers?.Hub, public_url: publicUrl },
    Spawner,
  });
  const hub = await folder.start();
  await startServer(folder, 'ada');
  const tokenFile = join(folder.directory, 'gateway-token');
  await writeFile(tokenFile, `${token}\n`, { mode: 0o600 });

  const [program, ...words] = command
    .replace('http://hub.internal:8080/', folder.apiUrl.replace(/hub\/api$/, ''))
    .replace('http://0.0.0.0:8000/', `http://127.0.0.1:${port}/`)
    .replace('/etc/hub/gateway-token', tokenFile)
    .split(' ');
  expect(program).toBe('hub');
  await using gateway = spawnHubProcess(words, { cwd: folder.directory });
  await until(() => gateway.stdout().includes('The gateway is ready at'), 'gateway ready');
  const browser = await logIn(publicUrl);
  const server = `${publicUrl}user/ada/`;
  const socket = await openSocket(browser, server);
  expect((await browser.open(`${publicUrl}hub/home`)).status).toBe(200);
  socket.close();

  hub.signal('SIGTERM');
  expect(await hub.exited).toBe(0);
  await folder.configure({
    Hub: { ...forOthers?.Hub, public_url: publicUrl, trusted_proxies: ['10.0.0.1'] },
    Spawner,
  });
  await using _next = await folder.start();
  expect(await gateway.exited).not.toBeNull();
});
