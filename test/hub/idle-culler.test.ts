import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { changeDatabase } from '../support/hub-database.ts';
import { pathOf, requires } from '../support/requires.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  serverPath,
  startServer,
  untilServer,
} from '../support/server-hub.ts';
import { type TestHub, type TestHubConfig, until } from '../support/test-hub.ts';

// Several servers and a service start in each of these.
const culler = join(import.meta.dirname, '..', '..', 'examples', 'idle-culler', 'idle-culler.ts');
const exactScopes = ['list:users', 'read:users:activity', 'read:servers', 'delete:servers'];
const twoHoursMs = 2 * 3_600_000;

const servers: TestHubConfig = {
  Hub: { allow_named_servers: true },
  Spawner: {
    access: 'gateway',
    cmd: fixtureApp('plain-web-app'),
    start_timeout: 300,
    http_timeout: 300,
  },
};

/** The same hub with the culler beside it, as its README says. */
function withCuller(flags: readonly string[], scopes = exactScopes): TestHubConfig {
  return {
    ...servers,
    Hub: {
      ...servers.Hub,
      cleanup_servers: true,
      services: [
        {
          name: 'idle-culler',
          command: [process.execPath, culler, '--interval=0.2', '--page-size=2', ...flags],
        },
      ],
      load_roles: [{ name: 'idle-culler', services: ['idle-culler'], scopes }],
    },
    Spawner: { ...servers.Spawner },
  };
}

/** Lets servers look as if they had been started, or only last used, two hours ago. */
async function age(hub: TestHub, userNames: readonly string[], column: string): Promise<void> {
  await changeDatabase(hub, (database) => {
    const change = database.prepare(
      `update servers set ${column} where user_id = (select id from users where users.name = ?)`,
    );
    for (const name of userNames) change.run(Date.now() - twoHoursMs, name);
  });
}

const idle = 'last_activity_at = ?1, started_at = ?1';

async function startAll(hub: TestHub, ...userNames: string[]): Promise<void> {
  await createUsers(hub, ...userNames);
  await Promise.all(
    userNames.map(async (name) => {
      await startServer(hub, serverPath(name));
      await untilServer(hub, serverPath(name), ({ ready }) => ready, `${name} has a server`);
      // Stored by now: it does not come back over what a test writes there.
      await untilActive(hub, name);
    }),
  );
}

const untilStopped = (hub: TestHub, path: string) =>
  untilServer(hub, path, ({ stopped }) => stopped, `${path} is stopped`);

const isReady = async (hub: TestHub, userName: string) =>
  (await getServer(hub, serverPath(userName))).ready;

/** Waits until the hub knows that a server was used in the last hour. */
async function untilActive(hub: TestHub, userName: string, serverName = ''): Promise<void> {
  await until(async () => {
    const answer = await hub.api(`/users/${userName}`, adminToken);
    const user = (await answer.json()) as { servers: Record<string, { last_activity: string }> };
    return Date.parse(user.servers[serverName]?.last_activity ?? '') > Date.now() - 3_600_000;
  }, `the hub knows that ${userName} is active`);
}

test('stops servers that are idle and leaves those alone that see traffic in any direction', async () => {
  await using hub = await createServerHub(servers);
  await startAll(hub, 'idle', 'sends', 'receives', 'later');
  const named = serverPath('idle', 'lab');
  await startServer(hub, named);
  await untilServer(hub, named, ({ ready }) => ready, 'the named server is ready');
  await untilActive(hub, 'idle', 'lab');

  const receives = await hub.logIn('receives');
  const url = `${hub.url}user/receives/?every=50`;
  await receives.open(url);
  const socket = new WebSocket(url.replace('http', 'ws'), {
    headers: { cookie: receives.cookieHeader(url), origin: new URL(hub.url).origin },
  });
  await once(socket, 'message');
  const sends = await hub.logIn('sends');
  await sends.open(`${hub.url}user/sends/`);

  await age(hub, ['idle', 'sends', 'receives'], idle);
  // From here on one of them asks, and the other only hears from its server.
  await sends.request(`${hub.url}user/sends/`);
  await untilActive(hub, 'sends');
  await untilActive(hub, 'receives');

  await hub.reload(withCuller(['--timeout=3600']));
  await untilStopped(hub, serverPath('idle'));
  await untilStopped(hub, named);
  await age(hub, ['later'], idle);
  await untilStopped(hub, serverPath('later'));
  expect(await isReady(hub, 'sends')).toBe(true);
  expect(await isReady(hub, 'receives')).toBe(true);
  socket.terminate();
});

test('stops servers that are too old, also in use, when it is told to', async () => {
  await using hub = await createServerHub(servers);
  await startAll(hub, 'old', 'young');
  await age(hub, ['old'], 'started_at = ?1');
  await hub.reload(withCuller(['--timeout=7200', '--max-age=3600']));
  await untilStopped(hub, serverPath('old'));
  expect(await isReady(hub, 'young')).toBe(true);
});

describe('without one of its scopes', () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await createServerHub(servers);
    await startAll(hub, 'idle');
    await age(hub, ['idle'], idle);
  });
  afterAll(() => hub[Symbol.asyncDispose]());

  test.each(['list:users', 'read:servers', 'delete:servers'])(
    'stops nothing without %s, and says what it lacks',
    async (missing) => {
      const rest = exactScopes.filter((scope) => scope !== missing);
      await hub.reload(withCuller(['--timeout=3600'], rest));
      await until(async () => {
        const answer = await hub.api('/services/idle-culler/output', adminToken);
        return JSON.stringify(await answer.json()).includes(missing);
      }, 'the culler says what it lacks');
      expect(await isReady(hub, 'idle')).toBe(true);
    },
  );
});

test('deletes users who are idle only when told to, with two scopes more, and no administrators', async () => {
  await using hub = await createServerHub(servers);
  await startAll(hub, 'idle', 'busy');
  await hub.api('/users', adminToken, {
    method: 'POST',
    body: JSON.stringify({ usernames: ['root'], admin: true }),
  });
  await age(hub, ['idle'], idle);
  await changeDatabase(hub, (database) => {
    database
      .prepare(`update users set created_at = ?1, last_activity_at = ?1 where name <> 'busy'`)
      .run(Date.now() - twoHoursMs);
  });
  await hub.reload(
    withCuller(['--timeout=3600', '--cull-users'], [...exactScopes, 'read:users', 'delete:users']),
  );
  const statusOf = async (name: string) => (await hub.api(`/users/${name}`, adminToken)).status;
  await until(async () => (await statusOf('idle')) === 404, 'the idle user is gone');
  expect(await isReady(hub, 'busy')).toBe(true);
  expect(await statusOf('root')).toBe(200);
});

const canRun = requires('python3-tornado');

test.runIf(canRun)('named servers go when a Python culler removes them', async () => {
  await using hub = await createServerHub(servers);
  await createUsers(hub, 'idle');
  const path = serverPath('idle', 'lab');
  await startServer(hub, path);
  await untilServer(hub, path, ({ ready }) => ready, 'the named server is ready');
  const remove = join(import.meta.dirname, '..', '..', 'fixtures', 'jupyter');
  const { stdout } = await promisify(execFile)(
    pathOf('python3-tornado'),
    [join(remove, 'remove_named_server.py'), path],
    { env: { JUPYTERHUB_API_URL: hub.apiUrl, JUPYTERHUB_API_TOKEN: adminToken } },
  );
  expect(stdout.trim()).toBe('204');
  expect((await hub.api(path, adminToken)).status).toBe(404);
});
