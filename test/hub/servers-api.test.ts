import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  isAlive,
  onceReportedTo,
  readEvents,
  serverPath,
  startServer,
  stopServer,
  tellToGo,
  tokenOf,
  untilServer,
} from '../support/server-hub.ts';

const namedServers = { allow_named_servers: true, named_server_limit_per_user: 2 };

test('a server is started by the API, answers at its address, and is stopped', async () => {
  await using hub = await createServerHub();
  await createUsers(hub, 'alice');
  const path = serverPath('alice');
  expect((await hub.api(path, adminToken)).status).toBe(404);
  const started = await startServer(hub, path);
  expect(started.status).toBe(201);
  expect(await started.json()).toMatchObject({
    name: '',
    ready: true,
    pending: null,
    url: '/user/alice/',
  });
  const { state } = await getServer(hub, path);
  const browser = await hub.logIn('alice');
  const page = await browser.open(`${hub.url}user/alice/some/page?x=1`);
  expect(page.status).toBe(200);
  expect(JSON.parse(page.body)).toMatchObject({ url: '/user/alice/some/page?x=1' });
  expect((await startServer(hub, path)).status).toBe(400);
  expect((await stopServer(hub, path)).status).toBe(204);
  expect(isAlive(Number(state?.['pid']))).toBe(false);
  expect(await getServer(hub, path)).toMatchObject({ ready: false, stopped: true, failure: null });
  expect((await stopServer(hub, path)).status).toBe(204);
});

test('a start that takes long is answered 202, followed by events, and can be cancelled', async () => {
  await using hub = await createServerHub({
    Spawner: { cmd: onceReportedTo(...fixtureApp('web-server')), slow_start_timeout: 0.5 },
  });
  await createUsers(hub, 'alice', 'bob');
  const [alice, bob] = [serverPath('alice'), serverPath('bob')];
  const answers = await Promise.all([startServer(hub, alice), startServer(hub, bob)]);
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  expect(await answers[0]?.json()).toMatchObject({ pending: 'spawn', ready: false });

  const events = await hub.api(`${alice}/progress`, adminToken);
  expect(events.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(events.headers.get('cache-control')).toContain('no-cache');
  await tellToGo(hub, 'alice');
  const reported = await readEvents(events);
  expect(reported[0]).toEqual({ progress: 0, message: 'Server requested.' });
  expect(reported.at(-1)).toEqual({
    progress: 100,
    ready: true,
    message: 'The server is ready.',
    url: '/user/alice/',
  });
  const again = await readEvents(await hub.api(`${alice}/progress`, adminToken));
  expect(again).toEqual([reported.at(-1)]);
  const german = await readEvents(await hub.api(`${alice}/progress?language=de`, adminToken));
  expect(german).toEqual([{ ...reported.at(-1), message: 'Der Server ist bereit.' }]);

  await untilServer(hub, bob, ({ state }) => state?.['pid'] !== undefined, 'it is launched');
  const cancelled = hub.api(`${bob}/progress`, adminToken).then(readEvents);
  expect((await stopServer(hub, bob)).status).toBe(204);
  expect((await cancelled).at(-1)).toMatchObject({
    failed: true,
    message: 'The start was cancelled.',
  });
  expect(await getServer(hub, bob)).toMatchObject({ stopped: true, failure: null });
  expect((await hub.api(`${bob}/progress`, adminToken)).status).toBe(404);
});

test('what may not be asked for is refused with the reason', async () => {
  await using hub = await createServerHub();
  await createUsers(hub, 'alice', 'bob');
  const path = serverPath('alice');
  const refused = async (answer: Response, status: number) => {
    expect(answer.status).toBe(status);
    return ((await answer.json()) as { message: string }).message;
  };
  await refused(await startServer(hub, serverPath('nobody')), 404);
  expect(await refused(await startServer(hub, serverPath('alice', 'lab')), 400)).toBe(
    'Named servers are not enabled.',
  );
  expect(await refused(await startServer(hub, path, { big: 'x'.repeat(70_000) }), 400)).toBe(
    'The options of all servers of a user may take 64 KiB together, written as JSON.',
  );
  const bad = await hub.api(path, adminToken, { method: 'POST', body: '{"user_options": ' });
  await refused(bad, 400);
  await refused(await hub.api(path, undefined, { method: 'POST' }), 403);
  await refused(await hub.api(path, await tokenOf(hub, 'bob'), { method: 'POST' }), 404);
  const reader = await tokenOf(hub, 'alice', ['read:servers!user']);
  await refused(await hub.api(path, reader, { method: 'POST' }), 403);
  await refused(await stopServer(hub, path, { remove: true }), 400);
  expect((await stopServer(hub, serverPath('bob'))).status).toBe(204);
  await refused(await hub.api(`${serverPath('bob')}/progress`, adminToken), 404);
  expect((await hub.api(path, await tokenOf(hub, 'alice'), { method: 'POST' })).status).toBe(201);
});

/** A folder with a spawner whose servers find what was chosen for them in USER_OPTIONS. */
async function writeTellingSpawner(directory: string): Promise<void> {
  const builtIn = join(
    import.meta.dirname,
    '../../src/spawning/local-process/local-process-plugin.ts',
  );
  await mkdir(join(directory, 'plugins'));
  await writeFile(
    join(directory, 'plugins', 'telling.ts'),
    `import { localProcessPlugin } from ${JSON.stringify(builtIn)};
export default {
  ...localProcessPlugin,
  name: 'telling',
  section: 'TellingSpawner',
  create(options, host) {
    const spawner = localProcessPlugin.create(options, host);
    return {
      ...spawner,
      start: (request) =>
        spawner.start({
          ...request,
          environment: { ...request.environment, USER_OPTIONS: JSON.stringify(request.userOptions) },
        }),
    };
  },
};
`,
  );
}

test('options of any JSON are stored, shown, handed to the spawner, and used again', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'hub-test-'));
  try {
    await writeTellingSpawner(directory);
    await using hub = await createServerHub(
      { Spawner: { class: 'telling', cmd: fixtureApp('prints-environment') } },
      { directory },
    );
    await createUsers(hub, 'alice');
    const path = serverPath('alice');
    const options = {
      image: 'jupyter/scipy:2026',
      repo: { url: 'https://git.example/r', ref: null, depth: [1, 2.5, true] },
    };
    expect((await startServer(hub, path, { user_options: options })).status).toBe(201);
    const browser = await hub.logIn('alice');
    const received = async () => {
      const page = await browser.open(`${hub.url}user/alice/`);
      const { environment } = JSON.parse(page.body) as { environment: Record<string, string> };
      return JSON.parse(environment['USER_OPTIONS'] ?? '');
    };
    expect(await received()).toEqual(options);
    expect((await getServer(hub, path)).user_options).toEqual(options);

    await stopServer(hub, path);
    expect((await startServer(hub, path)).status).toBe(201);
    expect(await received()).toEqual(options);

    // The whole body, as older clients send it.
    await stopServer(hub, path);
    expect((await startServer(hub, path, { image: 'other' })).status).toBe(201);
    expect(await received()).toEqual({ image: 'other' });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('more starts than allowed are put off with 429 and Retry-After', async () => {
  await using hub = await createServerHub({
    Hub: { concurrent_spawn_limit: 1, active_server_limit: 2 },
    Spawner: { cmd: onceReportedTo(...fixtureApp('web-server')) },
  });
  await createUsers(hub, 'a', 'b', 'c');
  const first = startServer(hub, serverPath('a'));
  const isPending = (path: string) =>
    hub.api(path, adminToken).then(async (answer) => answer.status === 200 && answer.json());
  while (!(await isPending(serverPath('a')))) await new Promise(setImmediate);
  await untilServer(hub, serverPath('a'), ({ pending }) => pending === 'spawn', 'a is pending');
  const second = await startServer(hub, serverPath('b'));
  expect(second.status).toBe(429);
  expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
  await tellToGo(hub, 'a');
  expect((await first).status).toBe(201);

  const third = startServer(hub, serverPath('b'));
  while (!(await isPending(serverPath('b')))) await new Promise(setImmediate);
  await untilServer(hub, serverPath('b'), ({ pending }) => pending === 'spawn', 'b is pending');
  await tellToGo(hub, 'b');
  expect((await third).status).toBe(201);
  const full = await startServer(hub, serverPath('c'));
  expect(full.status).toBe(429);
  expect(await full.json()).toMatchObject({ message: 'As many servers run as this hub allows.' });
});

describe('named servers', () => {
  test('are made, changed, started beside the default one, and removed', async () => {
    await using hub = await createServerHub({ Hub: namedServers });
    await createUsers(hub, 'alice');
    const lab = serverPath('alice', 'lab');
    const put = (path: string, body: unknown) =>
      hub.api(path, adminToken, { method: 'PUT', body: JSON.stringify(body) });
    const created = await put(lab, { display_name: 'My lab' });
    expect(created.status).toBe(201);
    expect(await created.json()).toMatchObject({ display_name: 'My lab', stopped: true });
    expect((await put(lab, {})).status).toBe(409);
    const change = (body: unknown) =>
      hub.api(lab, adminToken, { method: 'PATCH', body: JSON.stringify(body) });
    expect(await (await change({ display_name: 'Lab' })).json()).toMatchObject({
      display_name: 'Lab',
    });
    expect((await change({ colour: 1 })).status).toBe(400);

    const both = await Promise.all([startServer(hub, lab), startServer(hub, serverPath('alice'))]);
    expect(both.map(({ status }) => status)).toEqual([201, 201]);
    expect((await change({ display_name: 'X' })).status).toBe(400);
    const browser = await hub.logIn('alice');
    const [own, named] = [
      await browser.open(`${hub.url}user/alice/x`),
      await browser.open(`${hub.url}user/alice/lab/x`),
    ];
    const pidOf = ({ body }: { body: string }) => (JSON.parse(body) as { pid: number }).pid;
    expect(pidOf(own)).not.toBe(pidOf(named));
    const user = await (await hub.api('/users/alice', adminToken)).json();
    expect(Object.keys((user as { servers: object }).servers).sort()).toEqual(['', 'lab']);

    expect((await stopServer(hub, lab, { remove: true })).status).toBe(204);
    expect((await hub.api(lab, adminToken)).status).toBe(404);
    expect(isAlive(pidOf(named))).toBe(false);
    expect(isAlive(pidOf(own))).toBe(true);
  });

  test('are limited in number, and their names in shape', async () => {
    await using hub = await createServerHub({ Hub: namedServers });
    await createUsers(hub, 'alice', 'alice-taken');
    const make = async (name: string) =>
      (await hub.api(serverPath('alice', name), adminToken, { method: 'PUT', body: '{}' })).status;
    expect(await make('Upper')).toBe(400);
    expect(await make('a--b')).toBe(400);
    expect(await make('x'.repeat(31))).toBe(400);
    // The OAuth client hub-user-alice-taken is that of the user of this name.
    expect(await make('taken')).toBe(409);
    expect(await make('one')).toBe(201);
    expect(await make('two')).toBe(201);
    expect(await make('three')).toBe(400);
  });

  test('whose OAuth client has become that of a new user do not start any more', async () => {
    await using hub = await createServerHub({ Hub: namedServers });
    await createUsers(hub, 'alice');
    const lab = serverPath('alice', 'lab');
    expect((await startServer(hub, lab)).status).toBe(201);
    await stopServer(hub, lab);
    await createUsers(hub, 'alice-lab');
    expect((await startServer(hub, lab)).status).toBe(409);
    expect((await startServer(hub, serverPath('alice-lab'))).status).toBe(201);
  });
});

test('a user is deleted together with the servers, also with one that is starting', async () => {
  await using hub = await createServerHub({
    Hub: namedServers,
    Spawner: {
      profiles: [
        { name: 'quick', display_name: 'Quick' },
        { name: 'slow', display_name: 'Slow', cmd: onceReportedTo(...fixtureApp('web-server')) },
      ],
    },
  });
  await createUsers(hub, 'alice');
  await startServer(hub, serverPath('alice'));
  const { state } = await getServer(hub, serverPath('alice'));
  const slow = startServer(hub, serverPath('alice', 'slow'), { profile: 'slow' });
  while ((await hub.api(serverPath('alice', 'slow'), adminToken)).status === 404) {
    await new Promise(setImmediate);
  }
  await untilServer(hub, serverPath('alice', 'slow'), ({ pending }) => pending === 'spawn', 'it');
  expect((await hub.api('/users/alice', adminToken, { method: 'DELETE' })).status).toBe(204);
  expect((await slow).status).toBe(409);
  expect(isAlive(Number(state?.['pid']))).toBe(false);
  const gone = await fetch(`${hub.url}user/alice/`, { headers: { accept: 'application/json' } });
  expect(gone.status).toBe(424);
  expect((await hub.api('/users/alice', adminToken)).status).toBe(404);
});

test('a user is renamed: the server ends and starts at the new address', async () => {
  await using hub = await createServerHub();
  await createUsers(hub, 'alice');
  await startServer(hub, serverPath('alice'));
  const { state } = await getServer(hub, serverPath('alice'));
  const renamed = await hub.api('/users/alice', adminToken, {
    method: 'PATCH',
    body: JSON.stringify({ name: 'carol' }),
  });
  expect(renamed.status).toBe(200);
  expect(isAlive(Number(state?.['pid']))).toBe(false);
  expect((await startServer(hub, serverPath('carol'))).status).toBe(201);
  const browser = await hub.logIn('carol');
  expect((await browser.open(`${hub.url}user/carol/x`)).status).toBe(200);
});

test('the options a user chooses are used, kept, and used again', async () => {
  await using hub = await createServerHub({
    Spawner: {
      cmd: fixtureApp('prints-environment'),
      environment: { COLOUR: 'grey' },
      profiles: [
        { name: 'plain', display_name: 'Plain' },
        {
          name: 'blue',
          display_name: 'Blue',
          environment: { COLOUR: 'blue' },
          mem_limit: '1G',
          default_url: '/blue',
        },
      ],
    },
  });
  await createUsers(hub, 'alice');
  const path = serverPath('alice');
  const browser = await hub.logIn('alice');
  const environment = async () => {
    const { body } = await browser.open(`${hub.url}user/alice/`);
    return (JSON.parse(body) as { environment: Record<string, string> }).environment;
  };
  expect((await startServer(hub, path, { user_options: { profile: 'blue' } })).status).toBe(201);
  expect(await environment()).toMatchObject({
    COLOUR: 'blue',
    MEM_LIMIT: String(1024 ** 3),
    HUB_DEFAULT_URL: '/blue',
  });
  await stopServer(hub, path);
  await startServer(hub, path);
  expect(await environment()).toMatchObject({ COLOUR: 'blue' });
  await stopServer(hub, path);
  await startServer(hub, path, { profile: 'plain' });
  expect(await environment()).toMatchObject({ COLOUR: 'grey' });
  expect(await getServer(hub, path)).toMatchObject({ user_options: { profile: 'plain' } });
});

test("a server's own token does what a server must, and no more", async () => {
  await using hub = await createServerHub({ Spawner: { cmd: fixtureApp('prints-environment') } });
  await createUsers(hub, 'alice', 'bob');
  const path = serverPath('alice');
  await startServer(hub, path);
  const browser = await hub.logIn('alice');
  const { body } = await browser.open(`${hub.url}user/alice/`);
  const { environment, cwd } = JSON.parse(body) as {
    environment: Record<string, string>;
    cwd: string;
  };
  expect(cwd).toMatch(/\/homes\/alice$/);
  expect(environment).toMatchObject({
    HUB_CLIENT_ID: 'hub-user-alice',
    HUB_USER: 'alice',
    HUB_SERVER_NAME: '',
    HUB_SERVICE_PREFIX: '/user/alice/',
    HUB_OAUTH_CALLBACK_URL: '/user/alice/oauth_callback',
    HUB_API_URL: hub.apiUrl,
    HUB_BASE_URL: hub.url,
    HOME: cwd,
  });
  const token = environment['HUB_API_TOKEN'] ?? '';
  const who = (await (await hub.api('/user', token)).json()) as { name: string; scopes: string[] };
  expect(who.name).toBe('alice');
  expect(who.scopes.sort()).toEqual([
    'access:servers!server=alice/',
    'access:users:servers!server=alice/',
    'read:users:activity!user=alice',
    'users:activity!user=alice',
  ]);
  const report = {
    method: 'POST',
    body: JSON.stringify({ servers: { '': { last_activity: '2026-01-02T03:04:05Z' } } }),
  };
  expect((await hub.api('/users/alice/activity', token, report)).status).toBe(200);
  expect((await hub.api('/users/bob/activity', token, report)).status).toBe(404);
  expect((await hub.api('/users', token)).status).toBe(403);
  expect((await hub.api(path, token, { method: 'DELETE' })).status).toBe(403);
  await stopServer(hub, path);
  expect((await hub.api('/user', token)).status).toBe(403);
});
