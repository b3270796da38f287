import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { kill } from 'node:process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { singleuserFile } from '../../scripts/program.ts';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { programFile } from '../support/program-file.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  guarded,
  isAlive,
  serverPath,
  startServer,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';
import { submitForm, type TestHub, type TestHubConfig, until } from '../support/test-hub.ts';

/** What `fixtures/apps/plain-web-app.ts` answers. */
interface Echo {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly arguments: readonly string[];
  readonly pid: number;
}

const app = fixtureApp('plain-web-app');

/** A hub whose servers are apps behind `hub-singleuser`; the users alice and bob are there. */
async function createGuardedHub(
  spawner: Readonly<Record<string, unknown>> = {},
  config: TestHubConfig = {},
): Promise<TestHub> {
  const hub = await createServerHub({
    ...config,
    Authenticator: { admin_users: ['root'] },
    Spawner: {
      access: 'server',
      cmd: guarded(...app),
      start_timeout: 300,
      http_timeout: 300,
      ...spawner,
    },
  });
  await createUsers(hub, 'alice', 'bob');
  return hub;
}

async function start(hub: TestHub, userName = 'alice'): Promise<void> {
  const path = serverPath(userName);
  const answer = await startServer(hub, path);
  expect([201, 202]).toContain(answer.status);
  await untilServer(hub, path, ({ pending }) => pending === null, 'the start has ended');
  expect(await getServer(hub, path)).toMatchObject({ ready: true, failure: null });
}

async function stop(hub: TestHub): Promise<void> {
  const path = serverPath('alice');
  expect([202, 204]).toContain((await stopServer(hub, path)).status);
  await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
}

async function echoOf(hub: TestHub, browser: FakeBrowser, path = 'user/alice/'): Promise<Echo> {
  const page = await browser.open(hub.url + path);
  expect([page.status, page.url]).toEqual([200, hub.url + path]);
  return JSON.parse(page.body) as Echo;
}

async function issueToken(hub: TestHub, userName: string): Promise<string> {
  const answer = await hub.api(`/users/${userName}/tokens`, adminToken, {
    method: 'POST',
    body: '{}',
  });
  return ((await answer.json()) as { token: string }).token;
}

/** Where `hub-singleuser` itself listens and what its process is. */
async function stateOf(hub: TestHub): Promise<{ url: string; pid: number }> {
  const { state } = await getServer(hub, serverPath('alice'));
  return { url: String(state?.['url']), pid: Number(state?.['pid']) };
}

describe('a guarded server', () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await createGuardedHub({}, { Hub: { environment_prefixes: ['HUB', 'JUPYTERHUB'] } });
    await start(hub);
  });
  afterAll(() => hub[Symbol.asyncDispose]());

  test('lets its owner in without a question, and the app learns who it is', async () => {
    const browser = await hub.logIn('alice');
    const echo = await echoOf(hub, browser, 'user/alice/a/page?x=1');
    expect(echo.url).toBe('/user/alice/a/page?x=1');
    expect(echo.headers['x-hub-user']).toBe('alice');
    expect(echo.headers['cookie'] ?? '').not.toContain('hub-');
    expect(browser.cookieNames()).toContain('hub-user-alice');
  });

  test('neither the app nor anything it is sent holds the token of the server', async () => {
    const echo = await echoOf(hub, await hub.logIn('alice'));
    expect(echo.environment['HUB_USER']).toBe('alice');
    expect(Object.keys(echo.environment).filter((name) => name.includes('TOKEN'))).toEqual([]);
    expect(JSON.stringify(echo)).not.toMatch(/hub_[A-Za-z0-9_-]{20}/);
  });

  test('another user gets 403 by browser and token, and an administrator is asked and let in', async () => {
    const bob = await hub.logIn('bob');
    expect((await bob.open(`${hub.url}user/alice/`)).status).toBe(403);
    const byToken = (token: string) =>
      fetch(`${hub.url}user/alice/`, { headers: { authorization: `token ${token}` } });
    expect((await byToken(await issueToken(hub, 'bob'))).status).toBe(403);
    expect((await byToken(await issueToken(hub, 'alice'))).status).toBe(200);
    const root = await hub.logIn('root');
    const consent = await root.open(`${hub.url}user/alice/`);
    const allowed = await submitForm(root, consent, { decision: 'allow' });
    const page = await root.open(new URL(allowed.headers.location ?? '', hub.url).href);
    expect((JSON.parse(page.body) as Echo).headers['x-hub-user']).toBe('root');
  });

  test('a WebSocket passes the gateway and the guard, and ends when its owner logs out', async () => {
    const browser = await hub.logIn('alice');
    await echoOf(hub, browser);
    const url = `${hub.url}user/alice/ws`;
    const socket = new WebSocket(url.replace('http', 'ws'), {
      headers: { cookie: browser.cookieHeader(url), origin: new URL(hub.url).origin },
    });
    await once(socket, 'open');
    socket.send('hello');
    const [message] = (await once(socket, 'message')) as [Buffer];
    expect(message.toString()).toBe('hello');
    const closed = once(socket, 'close');
    await browser.request(`${hub.url}hub/logout`);
    await closed;
  });
});

test('an app that does not know its prefix is asked without it', async () => {
  const cmd = ['hub-singleuser', '--strip-prefix', '--', ...app];
  await using hub = await createGuardedHub({ cmd });
  await start(hub);
  const echo = await echoOf(hub, await hub.logIn('alice'), 'user/alice/a/page');
  expect(echo.url).toBe('/a/page');
  expect(echo.headers['x-forwarded-prefix']).toBe('/user/alice');
});

test('guard and app both listen on Unix sockets that no other account can open', async () => {
  await using hub = await createGuardedHub({ socket: true, cmd: guarded(...app, '{socket}') });
  await start(hub);
  const echo = await echoOf(hub, await hub.logIn('alice'));
  const { url } = await stateOf(hub);
  for (const socketUrl of [url, echo.environment['HUB_SERVICE_URL'] ?? '']) {
    const path = decodeURIComponent(socketUrl.replace('http+unix://', ''));
    expect((await stat(path)).isSocket()).toBe(true);
    expect((await stat(join(path, '..'))).mode & 0o077).toBe(0);
  }
  expect(echo.environment['PORT']).toBeUndefined();
});

test('the app gets a port of its own, and placeholders behind the guard stand for that one', async () => {
  await using hub = await createGuardedHub({
    cmd: guarded(...app, '--port', '{port}', '{prefix}'),
  });
  await start(hub);
  const { environment, arguments: words } = await echoOf(hub, await hub.logIn('alice'));
  expect(words).toEqual(['--port', environment['PORT'], '/user/alice/']);
  const { url } = await stateOf(hub);
  expect(url).not.toContain(String(environment['PORT']));
});

test('is one file too, which an old Node.js reads, and then says what is needed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hub-singleuser-'));
  const file = join(folder, singleuserFile);
  await copyFile(join(dirname(dirname(programFile('main'))), singleuserFile), file);
  const old = "Object.defineProperty(process.versions, 'node', { value: '12.22.12' });";
  await writeFile(join(folder, 'old.cjs'), old);
  const { status, stderr } = spawnSync(process.execPath, ['-r', join(folder, 'old.cjs'), file]);
  expect([status, String(stderr)]).toEqual([
    1,
    expect.stringMatching(/needs Node\.js 24.* 12\.22/),
  ]);
  // Beside its program, which is text, the file has nothing that came after ES5.
  const rest = (await readFile(file, 'utf8')).replace(/^var code = .*$/m, '');
  expect(rest).not.toMatch(/=>|`|\b(?:const|let|import|class|async)\b(?!M)/);

  const cmd = [process.execPath, file, '--strip-prefix', '--', ...app];
  await using hub = await createGuardedHub({ cmd });
  const alice = await hub.logIn('alice');
  await start(hub);
  expect((await echoOf(hub, alice)).url).toBe('/');
  await rm(folder, { recursive: true });
});

test('a shell, or any other program, finds hub-singleuser, and its placeholders stay its own', async () => {
  const script = `cd / && exec hub-singleuser --strip-prefix -- ${app.join(' ')} --port {port}`;
  await using hub = await createGuardedHub({
    cmd: ['sh', '-c', script],
    environment: { PATH: '/usr/bin:/bin' },
  });
  await start(hub);
  const { url, environment, arguments: words } = await echoOf(hub, await hub.logIn('alice'));
  expect(url).toBe('/');
  expect(words).toEqual(['--port', environment['PORT']]);
  expect((await stateOf(hub)).url).not.toContain(String(environment['PORT']));
  await expect((await hub.logIn('bob')).open(`${hub.url}user/alice/`)).resolves.toMatchObject({
    status: 403,
  });
});

test('activity that the gateway does not see is reported to the hub', async () => {
  await using hub = await createGuardedHub({ environment: { HUB_ACTIVITY_INTERVAL: '0.2' } });
  await start(hub);
  const before = (await getServer(hub, serverPath('alice'))).last_activity ?? '';
  const { url } = await stateOf(hub);
  const headers = { authorization: `token ${await issueToken(hub, 'alice')}` };
  // Past the gateway, straight to the guard.
  expect((await fetch(`${url}/user/alice/`, { headers })).status).toBe(200);
  await until(async () => {
    const answer = await hub.api('/users/alice', adminToken);
    const { servers } = (await answer.json()) as {
      servers: Record<string, { last_activity: string | null }>;
    };
    return (servers['']?.last_activity ?? '') > before;
  }, 'the report arrived');
});

test('a guarded server counts as started only when its app answers', async () => {
  await using hub = await createGuardedHub({
    cmd: guarded(...fixtureApp('never-listens')),
    http_timeout: 1,
  });
  await startServer(hub, serverPath('alice'));
  const { failure } = await untilServer(
    hub,
    serverPath('alice'),
    ({ stopped }) => stopped,
    'the hub has given up',
  );
  expect(failure?.message).toMatch(/did not answer within 1 second/);
});

test('the exit code of the app is what the hub tells', async () => {
  await using hub = await createGuardedHub();
  await start(hub);
  const browser = await hub.logIn('alice');
  await browser.open(`${hub.url}user/alice/exit?code=7`);
  const { failure } = await untilServer(
    hub,
    serverPath('alice'),
    ({ stopped }) => stopped,
    'the hub knows that the app has ended',
  );
  expect(failure?.message).toContain('exit code 7');
});

test('stopping a server gives the app time to end in its own way', async () => {
  await using hub = await createGuardedHub();
  await start(hub);
  const { pid } = await echoOf(hub, await hub.logIn('alice'));
  await stop(hub);
  const left = await readFile(join(hub.directory, 'homes', 'alice', 'ended-in-order'), 'utf8');
  expect(left).toBe(String(pid));
  await until(() => !isAlive(pid), 'the app is gone');
});

test('an app that does not end is ended with its guard', async () => {
  await using hub = await createGuardedHub({
    cmd: guarded(...fixtureApp('plain-web-app', '--stubborn')),
    stop_timeout: 1,
  });
  await start(hub);
  const { pid } = await echoOf(hub, await hub.logIn('alice'));
  await stop(hub);
  await until(() => !isAlive(pid), 'the app is gone');
});

test('an app does not outlive a guard that was killed while the hub was away', async () => {
  await using first = await createGuardedHub({}, { Hub: { cleanup_servers: false } });
  await start(first);
  const { pid } = await echoOf(first, await first.logIn('alice'));
  const { pid: guardPid } = await stateOf(first);
  await first.hub[Symbol.asyncDispose]();
  expect(isAlive(pid)).toBe(true);
  kill(guardPid, 'SIGKILL');
  await using hub = await first.restart();
  await untilServer(hub, serverPath('alice'), ({ stopped }) => stopped, 'the hub has noticed');
  await until(() => !isAlive(pid), 'the app is gone');
  await first[Symbol.asyncDispose]();
});

test('an app does not outlive a guard that was killed', async () => {
  await using hub = await createGuardedHub();
  await start(hub);
  const { pid } = await echoOf(hub, await hub.logIn('alice'));
  const { pid: guardPid } = await stateOf(hub);
  expect(guardPid).not.toBe(pid);
  kill(guardPid, 'SIGKILL');
  await untilServer(hub, serverPath('alice'), ({ stopped }) => stopped, 'the hub has noticed');
  await until(() => !isAlive(pid), 'the app is gone');
});
