import { once } from 'node:events';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  isAlive,
  type ServerModel,
  serverPath,
  startServer,
  startUntilReady,
  untilServer,
} from '../support/server-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

const path = serverPath('alice');

/** Starts the server and returns it once the start has failed. */
async function failedStart(hub: TestHub): Promise<ServerModel> {
  await createUsers(hub, 'alice').catch(() => undefined);
  const answer = await startServer(hub, path);
  expect(answer.status).not.toBe(201);
  const server = await untilServer(hub, path, ({ failure }) => failure !== null, 'it failed');
  expect(server).toMatchObject({ stopped: true, ready: false, pending: null });
  return server;
}

/** Whether any process of this hub's servers is left. */
async function pidsOf(hub: TestHub): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
      return environment.includes(`HUB_API_URL=${hub.apiUrl}`) ? [pid] : [];
    }),
  );
  return found.flat();
}

/** Seconds for a program that is heard of before they are over. */
const patient = [100];
/** Seconds for one that is given up after them: more of them, should a busy machine need more to tell why. */
const hurried = [1, 4, 16, 64];

/** Starts a server that fails, with ever more time until the failure tells the reason. */
async function expectFailure(
  cmd: readonly string[],
  httpTimeouts: readonly number[],
  reason: RegExp,
  fail: (hub: TestHub) => Promise<ServerModel> = failedStart,
): Promise<void> {
  let message: string | undefined;
  for (const http_timeout of httpTimeouts) {
    await using hub = await createServerHub({
      Spawner: { cmd, start_timeout: 200, http_timeout },
    });
    const { failure } = await fail(hub);
    expect(failure?.output.length).toBeLessThanOrEqual(50);
    expect(await pidsOf(hub)).toEqual([]);
    const health = await fetch(`${hub.url}hub/health`);
    expect(health.status).toBe(200);
    message = failure?.message;
    if (message !== undefined && reason.test(message)) break;
  }
  expect(message).toMatch(reason);
}

test('a program that takes the port of a slow server gets no visitors', async () => {
  const reason = new RegExp(
    `did not answer within \\d+ seconds?: pid ${process.pid} \\(.+\\) holds the port`,
  );
  await expectFailure(['sleep', '600'], hurried, reason, async (hub) => {
    await createUsers(hub, 'alice');
    const failing = startServer(hub, path);
    await until(async () => (await hub.api(path, adminToken)).ok, 'there is a server');
    // From its launch on the hub only waits for an answer.
    const isLaunched = ({ state, failure }: ServerModel) =>
      state?.['pid'] !== undefined || failure !== null;
    const { state } = await untilServer(hub, path, isLaunched, 'it is launched');
    const thief = createServer((_request, response) => response.end('give me your cookies'));
    // Without an address it was given up before it could be robbed.
    const { port } = new URL(String(state?.['url'] ?? 'http://127.0.0.1:0'));
    await once(thief.listen(Number(port), '127.0.0.1'), 'listening');
    try {
      await failing;
      const server = await untilServer(hub, path, ({ failure }) => failure !== null, 'it failed');
      const visit = await fetch(`${hub.url}user/alice/`, { redirect: 'manual' });
      expect(await visit.text()).not.toContain('cookies');
      return server;
    } finally {
      thief.closeAllConnections();
      thief.close();
    }
  });
});

test.each([
  ['does not exist', patient, ['no-such-program'], /command not found in PATH: no-such-program/],
  ['is not executable', patient, ['/etc/passwd'], /permission denied: \/etc\/passwd/],
  [
    'exits at once',
    patient,
    fixtureApp('exit-at-once', '3'),
    /exited \(code 3\) before it was ready/,
  ],
  [
    'never listens',
    hurried,
    fixtureApp('never-listens'),
    /did not answer within \d+ seconds?: nothing listens/,
  ],
  [
    'listens elsewhere',
    hurried,
    ['sh', '-c', 'HUB_SERVICE_URL=http://127.0.0.1:0 exec "$@"', 'sh', ...fixtureApp('web-server')],
    /nothing listens on http:/,
  ],
  ['answers 500', hurried, fixtureApp('web-server', 'broken'), /answers with status 500/],
  [
    'prints megabytes and hangs',
    hurried,
    fixtureApp('floods-output', '30'),
    /did not answer within \d+ seconds?/,
  ],
])(
  'a command that %s fails the start with the reason and leaves nothing',
  (_, seconds, cmd, reason) => expectFailure(cmd, seconds, reason),
);

test('a server that runs out of memory says so in the API, on its page and in the log', async () => {
  await using hub = await createServerHub({
    Spawner: {
      cmd: fixtureApp('uses-memory', '400'),
      start_timeout: 200,
      http_timeout: 200,
      mem_limit: '150M',
    },
    LocalProcessSpawner: { memory_check_interval: 0.05 },
  });
  const { failure } = await failedStart(hub);
  const message = 'The server ended before it was ready: out of memory at 150 MiB.';
  expect(failure?.message).toBe(message);
  expect(failure?.output.join('\n')).toContain('[hub] the server is ended');
  const browser = await hub.logIn('alice');
  expect((await browser.open(`${hub.url}hub/spawn-pending/alice`)).body).toContain(message);
  expect(hub.logLines).toContainEqual(
    expect.objectContaining({ msg: 'server start failed', reason: message }),
  );
});

test('a server whose folder was removed gets a new one, and one that cannot get one says so', async () => {
  await using hub = await createServerHub();
  await createUsers(hub, 'alice');
  await startUntilReady(hub, path);
  const home = join(hub.directory, 'homes', 'alice');
  await hub.api(path, 'admin-service-token', { method: 'DELETE' });
  await rm(home, { recursive: true });
  await startUntilReady(hub, path);
  expect((await stat(home)).isDirectory()).toBe(true);
  await hub.api(path, 'admin-service-token', { method: 'DELETE' });
  await rm(home, { recursive: true });
  await writeFile(home, 'a file is in the way');
  const { failure } = await failedStart(hub);
  expect(failure?.message).toMatch(/The directory .*homes\/alice of the server cannot be made\./);
});

test('a server that dies loses its route at once, and its page says why and offers to start it', async () => {
  await using hub = await createServerHub({ Spawner: { poll_interval: 3600 } });
  await createUsers(hub, 'alice');
  const browser = await hub.logIn('alice');
  await startUntilReady(hub, path);
  const { state } = await getServer(hub, path);
  process.kill(Number(state?.['pid']), 'SIGKILL');
  await untilServer(hub, path, ({ stopped }) => stopped, 'the death is noticed');
  const page = await browser.open(`${hub.url}user/alice/`);
  expect(page.status).toBe(424);
  expect(page.body).toContain('The server ended by signal SIGKILL.');
  expect(page.body).toContain('listening on http://');
  const home = await browser.open(`${hub.url}hub/home`);
  expect(home.body).toContain('The server ended by signal SIGKILL.');
  await startUntilReady(hub, path);
  expect((await getServer(hub, path)).failure).toBeNull();
});

test('a server that ends by itself closes the connections to it', async () => {
  await using hub = await createServerHub({ Spawner: { cmd: fixtureApp('gateway-app') } });
  const browser = await hub.logIn('alice');
  await startUntilReady(hub, path);
  await browser.open(`${hub.url}user/alice/`);
  const cookie = browser.cookieHeader(`${hub.url}user/alice/`);
  const events = await fetch(`${hub.url}user/alice/events`, { headers: { cookie } });
  const { state } = await getServer(hub, path);
  process.kill(Number(state?.['pid']), 'SIGKILL');
  await expect(events.text()).rejects.toThrow();
});

test('a program that outlives its server is ended with it', async () => {
  const leaves = fixtureApp('leaves-children', 'stay');
  const script = `${leaves.map((word) => `'${word}'`).join(' ')} & exec "$@"`;
  await using hub = await createServerHub({
    Spawner: { cmd: ['sh', '-c', script, 'sh', ...fixtureApp('web-server')] },
  });
  await createUsers(hub, 'alice');
  await startUntilReady(hub, path);
  await until(async () => (await pidsOf(hub)).length >= 4, 'the children are there');
  const pids = await pidsOf(hub);
  await hub.api(path, 'admin-service-token', { method: 'DELETE' });
  await until(() => pids.every((pid) => !isAlive(pid)), 'all are gone');
});

test('a start that takes longer than start_timeout is given up', async () => {
  await using hub = await createServerHub({
    Spawner: { cmd: fixtureApp('never-listens'), start_timeout: 1.0015, http_timeout: 60 },
  });
  const { failure } = await failedStart(hub);
  expect(failure?.message).toBe('The server did not start within 1.002 seconds.');
  expect(await pidsOf(hub)).toEqual([]);
});

test('output with a secret in it is not shown', async () => {
  const cmd = ['sh', '-c', 'echo "token is $HUB_API_TOKEN"; exit 1'];
  await using hub = await createServerHub({ Spawner: { cmd } });
  const { failure } = await failedStart(hub);
  expect(failure?.output).toEqual(['token is [secret]']);
});

test('a server on a socket is reached through the hub, and by no other account of the machine', async () => {
  await using hub = await createServerHub({ Spawner: { socket: true } });
  await createUsers(hub, 'alice');
  await startUntilReady(hub, path);
  const { state } = await getServer(hub, path);
  const socket = decodeURIComponent(String(state?.['url']).replace('http+unix://', ''));
  expect((await stat(join(socket, '..'))).mode & 0o077).toBe(0);
  const browser = await hub.logIn('alice');
  expect((await browser.open(`${hub.url}user/alice/x`)).status).toBe(200);
});
