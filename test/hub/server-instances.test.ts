import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
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
  stopServer,
  submitFormTo,
  untilServer,
} from '../support/server-hub.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const alice = serverPath('alice');
const leftovers: number[] = [];
afterEach(() => {
  for (const pid of leftovers.splice(0)) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
});

async function pidOf(hub: TestHub, path: string): Promise<number> {
  const pid = Number((await getServer(hub, path)).state?.['pid']);
  leftovers.push(pid);
  return pid;
}

/** What a person who is logged in gets from a server. */
async function statusAt(hub: TestHub, cookie: string, path = 'user/alice/'): Promise<number> {
  const answer = await fetch(hub.url + path, { headers: { cookie }, redirect: 'manual' });
  await answer.body?.cancel();
  return answer.status;
}

async function openServer(hub: TestHub): Promise<string> {
  const browser = await hub.logIn('alice');
  await browser.open(`${hub.url}user/alice/`);
  return browser.cookieHeader(`${hub.url}user/alice/`);
}

describe.skipIf(!hasPostgres())('users’ servers of several instances', () => {
  const cluster = usePostgres();
  const shared = async (more = {}) => ({
    database_url: await cluster().createDatabase(),
    cleanup_servers: false,
    ...more,
  });

  test('an instance that starts beside others leaves their servers and services alone', async () => {
    const Hub = await shared();
    await using first = await createServerHub({
      Hub: {
        ...Hub,
      },
    });
    await createUsers(first, 'alice');
    await startUntilReady(first, alice);
    const pid = await pidOf(first, alice);
    const cookie = await openServer(first);

    // As it was told to do once: no commands, no spawner. And one that is configured in the same way.
    await using bare = await createTestHub({ Hub });
    await using same = await createServerHub({ Hub });
    for (const hub of [first, bare, same]) {
      expect(await getServer(hub, alice)).toMatchObject({ ready: true, failure: null });
      await until(async () => (await statusAt(hub, cookie)) === 200, 'the server is led to');
    }
    expect(isAlive(pid)).toBe(true);
    // Its own token is still worth something.
    const tokens = await (await first.api('/users/alice/tokens', adminToken)).text();
    expect(tokens).toContain('api_tokens');

    await bare[Symbol.asyncDispose]();
    await same[Symbol.asyncDispose]();
    expect(await getServer(first, alice)).toMatchObject({ ready: true });
    expect(isAlive(pid)).toBe(true);
  });

  test('whatever is asked for at another instance is done: stop, delete, rename', async () => {
    const Hub = await shared();
    await using first = await createServerHub({ Hub });
    await using second = await createServerHub({ Hub });
    const pids: number[] = [];
    for (const name of ['alice', 'bob', 'carol']) {
      await createUsers(first, name);
      await startUntilReady(first, serverPath(name));
      // Whether or not the second one has heard of it by now.
      const headers = { accept: 'application/json', authorization: `token ${adminToken}` };
      expect((await fetch(`${second.url}user/${name}/`, { headers })).status).toBe(200);
      pids.push(await pidOf(first, serverPath(name)));
    }
    expect((await stopServer(second, alice)).status).toBe(204);
    expect(await getServer(first, alice)).toMatchObject({ stopped: true });
    expect((await second.api('/users/bob', adminToken, { method: 'DELETE' })).status).toBe(204);
    const renamed = await second.api('/users/carol', adminToken, {
      method: 'PATCH',
      body: JSON.stringify({ name: 'caroline' }),
    });
    expect(renamed.status).toBe(200);
    await until(() => !pids.some(isAlive), 'all processes are gone');
    for (const hub of [first, second]) {
      for (const name of ['alice', 'bob', 'carol']) {
        const answer = await fetch(`${hub.url}user/${name}/`, {
          headers: { accept: 'application/json' },
        });
        expect(answer.status).toBe(424);
      }
    }
  });

  test('two starts of a server in the same moment are one', async () => {
    const Hub = await shared();
    await using first = await createServerHub({ Hub });
    await using second = await createServerHub({ Hub });
    await createUsers(first, 'alice');
    const answers = await Promise.all(
      [first, second, first, second].map((hub) => startServer(hub, alice)),
    );
    for (const { status } of answers) expect([201, 202]).toContain(status);
    for (const hub of [first, second]) {
      await untilServer(hub, alice, ({ ready }) => ready, 'it is ready');
    }
    const pid = await pidOf(first, alice);
    expect(await pidOf(second, alice)).toBe(pid);
    const progress = await second.api(`${alice}/progress`, adminToken);
    expect(await progress.text()).toContain('"ready":true');
  });

  test('the limit of running servers holds for all instances together', async () => {
    const Hub = await shared({ active_server_limit: 2 });
    await using first = await createServerHub({ Hub });
    await using second = await createServerHub({ Hub });
    const names = ['u1', 'u2', 'u3', 'u4', 'u5', 'u6'];
    await createUsers(first, ...names);
    const answers = await Promise.all(
      names.map((name, index) => startServer([first, second][index % 2]!, serverPath(name))),
    );
    const accepted = answers.filter(({ status }) => status === 201 || status === 202);
    expect(accepted).toHaveLength(2);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(4);
    for (const name of names) {
      const server = await first.api(serverPath(name), adminToken);
      if (server.status === 200) await pidOf(first, serverPath(name));
      await stopServer(first, serverPath(name));
    }
  });

  test('an instance that stops hands its servers to another one of its machine at once', async () => {
    const Hub = await shared();
    // Outlives the stop: at its own end it ends whatever runs in its folder.
    await using first = await createServerHub({ Hub });
    await using second = await createServerHub({ Hub });
    await createUsers(first, 'alice');
    await startUntilReady(first, alice);
    const pid = await pidOf(first, alice);
    const cookie = await openServer(first);
    await until(async () => (await statusAt(second, cookie)) === 200, 'the second leads to it');
    const statuses = new Set<number>();
    const stopping = first.hub[Symbol.asyncDispose]();
    await until(async () => {
      statuses.add(await statusAt(second, cookie));
      return second.logLines.some(({ msg }) => /^server taken over/.test(String(msg)));
    }, 'it is taken over');
    await stopping;
    await untilServer(second, alice, ({ ready }) => ready, 'it is ready');
    statuses.add(await statusAt(second, cookie));
    // No visitor noticed.
    expect([...statuses]).toEqual([200]);
    process.kill(pid, 'SIGKILL');
    const { failure } = await untilServer(second, alice, ({ stopped }) => stopped, 'it is watched');
    expect(failure?.message).toMatch(/^The server ended/);
  });

  test('a server on another machine is unreachable while its instance is away', async () => {
    const Hub = await shared();
    const first = await createServerHub({ Hub }, { machineId: 'first machine' });
    await using second = await createServerHub({ Hub }, { machineId: 'second machine' });
    await createUsers(first, 'alice');
    await startUntilReady(first, alice);
    const pid = await pidOf(first, alice);
    const browser = await second.logIn('alice');
    const next = await first.restart();
    expect(await getServer(second, alice)).toMatchObject({ ready: true });
    await next[Symbol.asyncDispose]();

    const away = await getServer(second, alice);
    expect(away).toMatchObject({
      ready: false,
      stopped: false,
      unreachable_since: expect.any(String),
    });
    expect(isAlive(pid)).toBe(true);
    const page = await browser.request(`${second.url}hub/user/alice/`);
    expect(page.body).toContain('cannot be reached');
    expect((await startServer(second, alice)).status).toBe(409);
    const json = await fetch(`${second.url}user/alice/`, {
      headers: { accept: 'application/json' },
    });
    expect(json.status).toBe(503);
    expect(await json.json()).toMatchObject({ unreachable_since: away.unreachable_since });

    // Its user gives it up, and has another one.
    const home = await browser.open(`${second.url}hub/home`);
    expect(home.body).toContain('Unreachable');
    await submitFormTo(browser, home, /stop/);
    await untilServer(second, alice, ({ stopped }) => stopped, 'it is given up');
    await startUntilReady(second, alice);
    expect(await pidOf(second, alice)).not.toBe(pid);
  });
});

describe.skipIf(!hasPostgres())('instances that are killed', () => {
  const cluster = usePostgres();
  const api = (folder: HubFolder, path: string, method = 'GET') =>
    fetch(folder.apiUrl + path, { method, headers: { authorization: `token ${adminToken}` } });

  async function serverOf(folder: HubFolder, name: string): Promise<ServerModel> {
    return (await (await api(folder, `/users/${name}/server`)).json()) as ServerModel;
  }

  test('leave their servers to another one, without an end, a new token or a second copy', async () => {
    const Hub = {
      database_url: await cluster().createDatabase(),
      cookie_secret: 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5',
    };
    const config = { Hub, Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' } };
    await using first = await createHubFolder(config);
    await using second = await createHubFolder(config);
    const hub = await first.start();
    await using heir = await second.start();
    const names = ['ann', 'bob', 'eve'];
    for (const name of names) {
      await api(first, `/users/${name}`, 'POST');
      await api(first, `/users/${name}/server`, 'POST');
    }
    const pids = new Map<string, unknown>();
    for (const name of names) {
      await until(async () => (await serverOf(first, name)).ready === true, 'it is ready');
      const pid = (await serverOf(first, name)).state?.['pid'];
      pids.set(name, pid);
      leftovers.push(Number(pid));
    }
    hub.signal('SIGKILL');
    await hub.exited;
    const died = Number(pids.get('eve'));
    process.kill(died, 'SIGKILL');

    await until(() => heir.logged(/^server taken over/).length === 3, 'all are taken over');
    for (const name of ['ann', 'bob']) {
      expect(await serverOf(second, name)).toMatchObject({ ready: true, failure: null });
      expect((await serverOf(second, name)).state?.['pid']).toBe(pids.get(name));
      expect(isAlive(Number(pids.get(name)))).toBe(true);
    }
    await until(async () => (await serverOf(second, 'eve')).stopped === true, 'eve’s is stopped');

    // The first comes back and takes nothing away.
    await using back = await first.start();
    expect(back.logged(/^server taken over/)).toEqual([]);
    for (const folder of [first, second]) {
      expect(await serverOf(folder, 'ann')).toMatchObject({ ready: true, failure: null });
    }
    expect(heir.logged(/server left to|stale server ended/)).toEqual([]);
  });
});
