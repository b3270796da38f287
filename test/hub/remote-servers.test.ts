import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { hasPostgres } from '../support/postgres.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  guarded,
  isAlive,
  readEvents,
  serverPath,
  startServer,
  startUntilReady,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { type TestHub, type TestHubConfig, until } from '../support/test-hub.ts';

/** A hub whose servers are jobs of a batch system, and tell their own addresses. */
function createBatchHub(config: TestHubConfig = {}): Promise<TestHub> {
  return createServerHub({
    ...config,
    Hub: {
      plugins_dir: join(projectDirectory, 'fixtures', 'plugins'),
      allow_named_servers: true,
      ...config.Hub,
    },
    Spawner: {
      class: 'batch',
      access: 'server',
      cmd: guarded(...fixtureApp('plain-web-app')),
      start_timeout: 300,
      http_timeout: 300,
      slow_start_timeout: 0,
      profiles: [
        {
          name: 'long',
          options: { partition: 'long', is_queued: true },
          mem_limit: '1G',
          cpu_limit: 2,
          volumes: [
            { source: '/data/{username}', target: '/data' },
            { source: 'home-{username}', target: '/home', read_only: true },
          ],
        },
        { name: 'short' },
      ],
      ...config.Spawner,
    },
  });
}

async function folderOf(hub: TestHub, path: string): Promise<string> {
  const { state } = await untilServer(
    hub,
    path,
    ({ state }) => state?.['folder'] !== undefined,
    'it waits',
  );
  return String(state?.['folder']);
}

/** Lets a job leave the queue. */
async function letGo(hub: TestHub, path: string): Promise<void> {
  await writeFile(join(await folderOf(hub, path), 'go'), '');
}

async function reportedTo(hub: TestHub, path: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(join(await folderOf(hub, path), 'told.json'), 'utf8'));
}

const startTimeoutSeconds = 5;

test('a server waits in the queue beyond its timeout, tells its port and is reached there', async () => {
  await using hub = await createBatchHub({
    Hub: { load_groups: [{ name: 'physics', users: ['alice ä'] }] },
    // Enough to get to the queue on a busy machine.
    Spawner: { start_timeout: startTimeoutSeconds },
  });
  const path = serverPath('alice ä');
  expect((await startServer(hub, path, { profile: 'long', gpu: { kind: 'any' } })).status).toBe(
    202,
  );
  const begun = performance.now();
  await until(() => performance.now() - begun > 1_200 * startTimeoutSeconds, 'the timeout is over');
  expect((await getServer(hub, path)).pending).toBe('spawn');
  const reported = await reportedTo(hub, path);
  expect(reported).toMatchObject({
    userName: 'alice ä',
    objectName: expect.stringMatching(/^u-alice--[a-z2-7]{26}$/),
    groups: ['physics'],
    profile: 'long',
    profileOptions: { partition: 'long', is_queued: true },
    limits: { memoryBytes: 1024 ** 3, cpuCores: 2 },
    memoryLimitBytes: 1024 ** 3,
    userOptions: { profile: 'long', gpu: { kind: 'any' } },
    volumes: [
      { source: '/data/alice%20%^c3%^a4', target: '/data', readOnly: false },
      { source: `home-${reported['objectName']}`, target: '/home', readOnly: true },
    ],
  });
  const events = hub.api(`${path}/progress`, adminToken).then(readEvents);
  await letGo(hub, path);
  expect(await events).toContainEqual({
    progress: 10,
    message: 'Waiting in the queue long.',
    phase: 'pending',
    reason: 'Priority',
  });
  await untilServer(hub, path, ({ ready }) => ready, 'it is ready');
  const browser = await hub.logIn('alice ä');
  expect((await browser.open(`${hub.url}user/alice%20%C3%A4/`)).status).toBe(200);
});

test('only the token of the server tells its address, one, and where the spawner allows', async () => {
  await using hub = await createBatchHub({ Spawner: { cmd: fixtureApp('prints-own-token') } });
  await createUsers(hub, 'alice', 'bob');
  const path = serverPath('alice');
  await startServer(hub, path, { profile: 'short' });
  const tokenFile = join(hub.directory, 'homes', 'alice', 'token');
  await until(() => existsSync(tokenFile), 'the server has written its token');
  const token = await readFile(tokenFile, 'utf8');
  const tell = (body: unknown, { by = token, at = path } = {}) =>
    hub.api(`${at}/address`, by, { method: 'POST', body: JSON.stringify(body) });

  expect((await tell({ port: 4711 }, { by: adminToken })).status).toBe(403);
  expect((await tell({ port: 4711 }, { at: serverPath('bob') })).status).toBe(404);
  for (const bad of [
    {},
    { port: 0 },
    { port: 65_536 },
    { port: 1, host: 'a b' },
    { port: 1, host: 'x@y' },
    { port: 1, url: 'http://x' },
  ]) {
    expect((await tell(bad)).status, JSON.stringify(bad)).toBe(400);
  }
  const remote = await tell({ host: 'metadata.internal', port: 80 });
  expect(remote.status).toBe(403);
  expect(await remote.text()).toContain('The job does not run on metadata.internal.');
  const port = Number(await readFile(join(hub.directory, 'homes', 'alice', 'port'), 'utf8'));
  expect((await tell({ port })).status).toBe(204);
  await untilServer(hub, path, ({ ready }) => ready, 'it is ready');
  expect((await tell({ host: '127.0.0.1', port })).status).toBe(204);
  expect((await tell({ port: port === 80 ? 81 : 80 })).status).toBe(409);
});

test('what the spawner keeps of a server is deleted with it, and with its user', async () => {
  await using hub = await createBatchHub();
  await createUsers(hub, 'alice');
  const paths = [serverPath('alice', 'lab'), serverPath('alice')];
  const folders: string[] = [];
  for (const path of paths) {
    await startUntilReady(hub, path, { profile: 'short' });
    folders.push(await folderOf(hub, path));
    await stopServer(hub, path);
    await untilServer(hub, path, ({ stopped }) => stopped, 'it has stopped');
  }
  expect(folders.map(existsSync)).toEqual([true, true]);

  const [lab = '', main = ''] = folders;
  await writeFile(join(lab, 'locked'), '');
  const refused = await stopServer(hub, serverPath('alice', 'lab'), { remove: true });
  expect(refused.status).toBe(502);
  expect(await refused.text()).toContain('The folder of the job is locked.');
  expect((await getServer(hub, serverPath('alice', 'lab'))).stopped).toBe(true);
  const kept = await hub.api('/users/alice', adminToken, { method: 'DELETE' });
  expect([kept.status, existsSync(lab)]).toEqual([502, true]);

  await rm(join(lab, 'locked'));
  expect((await stopServer(hub, serverPath('alice', 'lab'), { remove: true })).status).toBe(204);
  expect(existsSync(lab)).toBe(false);
  expect((await hub.api('/users/alice', adminToken, { method: 'DELETE' })).status).toBe(204);
  expect(existsSync(main)).toBe(false);
});

test('profiles choose among spawners, and are open to groups', async () => {
  const config: TestHubConfig = {
    Hub: {
      cleanup_servers: false,
      load_groups: [
        { name: 'physics', users: ['alice'] },
        { name: 'art', users: ['bob'] },
      ],
    },
    Spawner: {
      class: ['local-process', { class: 'batch', name: 'cluster' }],
      profiles: [
        { name: 'here', display_name: 'On this machine' },
        { name: 'queue', display_name: 'In the queue', spawner: 'cluster', groups: ['physics'] },
      ],
    },
  };
  await using first = await createBatchHub(config);
  const [near, far] = [serverPath('alice'), serverPath('alice', 'far')];
  await startUntilReady(first, near, { profile: 'here' });
  await startUntilReady(first, far, { profile: 'queue' });
  expect((await getServer(first, near)).state).toMatchObject({ spawner: 'local-process' });
  expect((await getServer(first, far)).state).toMatchObject({ spawner: 'cluster' });
  const refused = await startServer(first, serverPath('bob'), { profile: 'queue' });
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain('There is no such profile; there are: here.');
  const pages = await Promise.all(
    ['alice', 'bob'].map(async (name) => {
      const browser = await first.logIn(name);
      return (await browser.open(`${first.url}hub/spawn/${name}/new`)).body;
    }),
  );
  expect(pages.map((page) => page.includes('In the queue'))).toEqual([true, false]);
  expect(pages.map((page) => page.includes('On this machine'))).toEqual([true, true]);

  await using hub = await first.restart();
  for (const path of [near, far]) {
    await untilServer(hub, path, ({ ready }) => ready, `${path} is found again`);
    expect([202, 204]).toContain((await stopServer(hub, path)).status);
    await untilServer(hub, path, ({ stopped }) => stopped, `${path} has stopped`);
  }
});

test('a start that waits in a queue goes on after a restart of the hub, and can be cancelled', async () => {
  await using first = await createBatchHub({ Hub: { cleanup_servers: false } });
  await createUsers(first, 'alice');
  const [path, other] = [serverPath('alice'), serverPath('alice', 'other')];
  const pids: unknown[] = [];
  for (const each of [path, other]) {
    await startServer(first, each, { profile: 'long' });
    await folderOf(first, each);
    pids.push((await getServer(first, each)).state?.['pid']);
  }
  const stream = readEvents(await first.api(`${path}/progress`, adminToken));
  await using hub = await first.restart();
  expect((await stream).at(-1)).toMatchObject({ phase: 'pending' });

  expect((await getServer(hub, path)).pending).toBe('spawn');
  const following = hub.api(`${path}/progress`, adminToken).then(readEvents);
  await letGo(hub, path);
  expect(await following).toContainEqual({
    progress: 10,
    message: 'Still in the queue.',
    phase: 'pending',
  });
  const { state } = await untilServer(hub, path, ({ ready }) => ready, 'it is ready');
  expect(state?.['pid']).toBe(pids[0]);
  const browser = await hub.logIn('alice');
  expect((await browser.open(`${hub.url}user/alice/`)).status).toBe(200);

  expect(isAlive(Number(pids[1]))).toBe(true);
  expect([202, 204]).toContain((await stopServer(hub, other)).status);
  await untilServer(hub, other, ({ stopped }) => stopped, 'the other one is cancelled');
  expect(isAlive(Number(pids[1]))).toBe(false);
  expect([202, 204]).toContain((await stopServer(hub, path)).status);
  await untilServer(hub, path, ({ stopped }) => stopped, 'it has stopped');
});

describe.skipIf(!hasPostgres())('a start at another instance', () => {
  const cluster = usePostgres();

  test('is followed step by step, on its page and by the API', async () => {
    const Hub = { database_url: await cluster().createDatabase(), cleanup_servers: false };
    await using first = await createBatchHub({ Hub });
    await using second = await createBatchHub({ Hub });
    await createUsers(first, 'alice');
    const path = serverPath('alice');
    expect((await startServer(first, path, { profile: 'long' })).status).toBe(202);
    const waits = { message: 'Waiting in the queue long.', phase: 'pending', reason: 'Priority' };
    const following = await second.api(`${path}/progress`, adminToken);
    const events: string[] = [];
    const reading = (async () => {
      for await (const piece of following.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        events.push(piece);
      }
    })();
    await until(() => events.join('').includes(waits.message), 'the step is told');
    const browser = await second.logIn('alice');
    const page = await browser.open(`${second.url}hub/spawn-pending/alice`);
    expect(page.body).toContain(`<li data-phase="pending">${waits.message}</li>`);
    expect(page.body).toMatch(/<span id="elapsed">[^<]+<\/span> so far/);
    await letGo(first, path);
    await untilServer(first, path, ({ ready }) => ready, 'it is ready');
    await reading;
    const reported = events.join('').split('\n\n');
    expect(reported.filter((event) => event.includes(waits.message))).toHaveLength(1);
    expect(reported.filter((event) => event.includes('"ready":true'))).toHaveLength(1);
    expect(reported.join('')).toContain('"url":"/user/alice/"');
  });

  test('ends with the address that the server tells to any instance', async () => {
    const Hub = { database_url: await cluster().createDatabase(), cleanup_servers: false };
    const Spawner = { cmd: fixtureApp('prints-own-token') };
    await using first = await createBatchHub({ Hub, Spawner });
    await using second = await createBatchHub({ Hub, Spawner });
    await createUsers(first, 'alice');
    const path = serverPath('alice');
    await startServer(first, path, { profile: 'short' });
    const file = (name: string) => join(first.directory, 'homes', 'alice', name);
    await until(() => existsSync(file('token')), 'the server has written its token');
    const token = await readFile(file('token'), 'utf8');
    const tell = (body: object) =>
      second.api(`${path}/address`, token, { method: 'POST', body: JSON.stringify(body) });
    const refused = await tell({ host: 'metadata.internal', port: 80 });
    expect([refused.status, await refused.text()]).toEqual([
      403,
      expect.stringContaining('The job does not run on metadata.internal.'),
    ]);
    const port = Number(await readFile(file('port'), 'utf8'));
    expect((await tell({ port })).status).toBe(204);
    await untilServer(second, path, ({ ready }) => ready, 'it is ready');
    expect((await tell({ port: port === 80 ? 81 : 80 })).status).toBe(409);
    await stopServer(first, path);
  });

  test('is followed to its end where its instance cannot be asked', async () => {
    const Hub = { database_url: await cluster().createDatabase(), cleanup_servers: false };
    await using first = await createBatchHub({
      Hub: { ...Hub, instance_url: 'http://127.0.0.1:9' },
    });
    await using second = await createBatchHub({ Hub });
    await createUsers(first, 'alice');
    const path = serverPath('alice');
    await startServer(first, path, { profile: 'long' });
    const following = await second.api(`${path}/progress`, adminToken);
    await stopServer(first, path);
    expect((await readEvents(following)).at(-1)).toMatchObject({ failed: true, progress: 100 });
  });
});
