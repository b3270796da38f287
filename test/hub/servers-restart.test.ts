import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, expect, test } from 'vitest';
import { identifyProcess } from '../../src/platform/process-table/process-table.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { killTrees } from '../support/leftovers.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  guarded,
  isAlive,
  onceReportedTo,
  type ServerModel,
  serverPath,
  startServer,
  startUntilReady,
  untilServer,
} from '../support/server-hub.ts';
import { submitLogin, until } from '../support/test-hub.ts';

const servers = { cmd: guarded(...fixtureApp('gateway-app')), access: 'server' };
const leftovers: number[] = [];
afterEach(() => killTrees(leftovers.splice(0)));

/** A hub in a process of its own, spoken to over HTTP. */
async function createProcessHub(Spawner: Record<string, unknown>, Hub = {}) {
  const folder = await createHubFolder({ Hub, Spawner });
  const api = (path: string, init: RequestInit = {}) =>
    fetch(folder.apiUrl + path, {
      ...init,
      headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
    });
  const server = async (path: string) => (await (await api(path)).json()) as ServerModel;
  const untilIs = async (path: string, isThere: (server: ServerModel) => boolean) => {
    let now = await server(path);
    await until(async () => {
      now = await server(path);
      return isThere(now);
    }, `${path} is as it should be`);
    if (now.state !== undefined) leftovers.push(Number(now.state['pid']));
    return now;
  };
  const users = (...usernames: string[]) =>
    api('/users', { method: 'POST', body: JSON.stringify({ usernames }) });
  return { folder, api, server, untilIs, users };
}

async function logIn(folder: HubFolder, userName: string): Promise<FakeBrowser> {
  const browser = new FakeBrowser();
  await submitLogin(browser, folder.url, userName, 'test');
  return browser;
}

test('servers go on while the hub restarts: process, route, token and cookie stay', async () => {
  const config = { Hub: { cleanup_servers: false }, Spawner: servers };
  await using hub = await createServerHub(config);
  const browser = await hub.logIn('alice');
  const path = serverPath('alice');
  await startUntilReady(hub, path);
  await browser.open(`${hub.url}user/alice/`);
  const cookie = browser.cookieHeader(`${hub.url}user/alice/`);
  const before = await getServer(hub, path);
  const pid = Number(before.state?.['pid']);
  leftovers.push(pid);

  await using next = await hub.restart();
  const after = await getServer(next, path);
  expect(after).toEqual({ ...before, last_activity: after.last_activity });
  // What the gateway forwarded was noted when the first hub ended.
  expect(Date.parse(after.last_activity ?? '')).toBeGreaterThan(Date.parse(before.started ?? ''));
  expect(isAlive(pid)).toBe(true);
  const again = await fetch(`${next.url}user/alice/`, { headers: { cookie }, redirect: 'manual' });
  expect(again.status).toBe(200);
  // It is watched as before.
  process.kill(pid, 'SIGKILL');
  const dead = await untilServer(next, path, ({ stopped }) => stopped, 'the death is noticed');
  expect(dead.failure?.message).toBe('The server ended with an unknown exit code.');
});

test('with cleanup_servers they end with the hub', async () => {
  const hub = await createServerHub({ Spawner: servers });
  await createUsers(hub, 'alice', 'bob');
  await Promise.all(['alice', 'bob'].map((name) => startUntilReady(hub, serverPath(name))));
  const pids = await Promise.all(
    ['alice', 'bob'].map(async (name) => {
      const { state } = await getServer(hub, serverPath(name));
      return Number(state?.['pid']);
    }),
  );
  leftovers.push(...pids);
  await hub[Symbol.asyncDispose]();
  expect(pids.filter(isAlive)).toEqual([]);
});

test('a hub that stops cancels starts at once, though pages follow them', async () => {
  const hub = await createServerHub({ Spawner: { cmd: onceReportedTo('true') } });
  await createUsers(hub, 'alice');
  const path = serverPath('alice');
  const starting = startServer(hub, path);
  await until(async () => (await hub.api(path, adminToken)).status === 200, 'the server is known');
  const { state } = await untilServer(
    hub,
    path,
    (server) => server.state?.['pid'] !== undefined,
    'the process is known',
  );
  const events = await hub.api(`${path}/progress`, adminToken);
  await hub[Symbol.asyncDispose]();
  expect(await events.text()).toContain('"failed":true');
  expect((await starting).status).toBe(409);
  expect(isAlive(Number(state?.['pid']))).toBe(false);
});

test('after SIGKILL of the hub servers are found again, the dead and the half-started cleaned up', async () => {
  const hub = await createProcessHub(servers, { allow_named_servers: true });
  await using folder = hub.folder;
  const first = await folder.start();
  await hub.users('alice', 'bob', 'carol');
  const [alice, bob, carol] = ['alice', 'bob', 'carol'].map((name) => serverPath(name)) as [
    string,
    string,
    string,
  ];
  const starts = [alice, bob].map((path) => hub.api(path, { method: 'POST' }));
  const runs = await hub.untilIs(alice, ({ ready }) => ready);
  const dies = await hub.untilIs(bob, ({ ready }) => ready);
  await Promise.all(starts);
  const browser = await logIn(folder, 'alice');
  expect((await browser.open(`${folder.url}user/alice/`)).status).toBe(200);
  const cookie = browser.cookieHeader(`${folder.url}user/alice/`);

  first.signal('SIGKILL');
  await first.exited;
  process.kill(Number(dies.state?.['pid']), 'SIGKILL');
  // The next hub is told to start others differently: one that is starting when it is killed too.
  await folder.configure({
    Hub: { allow_named_servers: true },
    Spawner: { ...servers, cmd: onceReportedTo('true') },
  });
  const second = await folder.start();
  expect(await hub.server(alice)).toMatchObject({ ready: true, state: runs.state });
  const answer = await fetch(`${folder.url}user/alice/`, {
    headers: { cookie },
    redirect: 'manual',
  });
  expect(answer.status).toBe(200);
  const gone = await hub.untilIs(bob, ({ stopped }) => stopped);
  expect(gone.failure?.message).toBe('The server ended while the hub was not running.');

  hub.api(carol, { method: 'POST' }).catch(() => undefined);
  await until(async () => (await hub.api(carol)).status === 200, 'carol is known');
  const half = await hub.untilIs(carol, ({ state }) => state?.['pid'] !== undefined);
  second.signal('SIGKILL');
  await second.exited;
  expect(isAlive(Number(half.state?.['pid']))).toBe(true);
  await folder.start();
  const cleaned = await hub.untilIs(carol, ({ stopped }) => stopped);
  expect(cleaned.failure?.message).toBe(
    'The hub stopped while the server was starting or stopping.',
  );
  expect(isAlive(Number(half.state?.['pid']))).toBe(false);
  expect(await hub.server(alice)).toMatchObject({ ready: true });
});

test('a process that the killed hub had no time to write down is ended by the next one', async () => {
  const hub = await createProcessHub({ ...servers, cmd: onceReportedTo('true') });
  await using folder = hub.folder;
  const first = await folder.start();
  await hub.users('alice');
  const path = serverPath('alice');
  hub.api(path, { method: 'POST' }).catch(() => undefined);
  await until(async () => (await hub.api(path)).status === 200, 'alice is known');
  const { state } = await hub.untilIs(path, (server) => server.state?.['pid'] !== undefined);
  first.signal('SIGKILL');
  await first.exited;
  // As if it had been killed a moment earlier.
  const database = new DatabaseSync(join(folder.directory, 'hub.sqlite'));
  database.exec("UPDATE servers SET spawner_state = '{}', url = NULL");
  database.close();
  await folder.start();
  await hub.untilIs(path, ({ stopped }) => stopped);
  expect(isAlive(Number(state?.['pid']))).toBe(false);
});

test('a pid that now belongs to another program is neither served nor ended', async () => {
  await using first = await createServerHub({ Hub: { cleanup_servers: false }, Spawner: servers });
  await createUsers(first, 'alice');
  const path = serverPath('alice');
  await startUntilReady(first, path);
  const { state } = await getServer(first, path);
  await first.hub[Symbol.asyncDispose]();
  process.kill(Number(state?.['pid']), 'SIGKILL');

  const innocent = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60000); console.log(1)'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(innocent.stdout, 'data');
  const pid = innocent.pid ?? 0;
  leftovers.push(pid);
  const database = new DatabaseSync(join(first.directory, 'hub.sqlite'));
  database.prepare('UPDATE servers SET spawner_state = ?').run(JSON.stringify({ ...state, pid }));
  database.close();
  await using hub = await first.restart();
  const gone = await untilServer(hub, path, ({ stopped }) => stopped, 'it is known to be gone');
  expect(gone.failure?.message).toBe('The server ended while the hub was not running.');
  expect(identifyProcess(pid)).toBeDefined();
  const answer = await fetch(`${hub.url}user/alice/`, {
    headers: { accept: 'application/json' },
  });
  expect(answer.status).toBe(424);
});

test('SIGTERM with cleanup_servers ends servers, without it leaves them', async () => {
  const hub = await createProcessHub(servers, { cleanup_servers: false });
  await using folder = hub.folder;
  const first = await folder.start();
  await hub.users('alice');
  const path = serverPath('alice');
  await hub.api(path, { method: 'POST' });
  const { state } = await hub.untilIs(path, ({ ready }) => ready);
  const pid = Number(state?.['pid']);
  first.signal('SIGTERM');
  expect(await first.exited).toBe(0);
  expect(isAlive(pid)).toBe(true);
  await folder.configure({ Hub: { cleanup_servers: true }, Spawner: servers });
  const second = await folder.start();
  expect(await hub.server(path)).toMatchObject({ ready: true });
  second.signal('SIGTERM');
  expect(await second.exited).toBe(0);
  await until(() => !isAlive(pid), 'the server has ended');
});
