import { describe, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { changeDatabase } from '../support/hub-database.ts';
import { serversInHub } from '../support/in-hub-servers.ts';
import {
  adminToken,
  callApi,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  onceReportedTo,
  readEvents,
  serverPath,
  startServer,
  submitFormTo,
  tellToGo,
  untilServer,
} from '../support/server-hub.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const slow = { Spawner: { cmd: onceReportedTo(...fixtureApp('web-server')) } };
const json = { accept: 'application/json', 'sec-fetch-mode': 'cors' };

/** Presses the button of the page on which a server is started. */
async function pressStart(hub: TestHub, browser: FakeBrowser, path: string, values = {}) {
  const page = await browser.open(new URL(path, hub.url).href);
  return submitFormTo(browser, page, /^\/hub\/spawn/, values);
}

test('a stopped server has a page with a start button, which leads back to what was asked for', async () => {
  await using hub = await createServerHub();
  const browser = await hub.logIn('alice');
  const wanted = `${hub.url}user/alice/notes/today?x=1`;
  const stopped = await browser.open(wanted);
  expect(stopped.status).toBe(424);
  expect(stopped.body).toContain('Start server');
  for (const root of ['user/alice?x=1', 'user/alice/?x=1']) {
    const page = await browser.open(hub.url + root);
    expect([page.status, page.url]).toEqual([424, `${hub.url}hub/user/alice/?x=1`]);
  }
  const pressed = await submitFormTo(browser, stopped, /spawn/);
  expect(pressed.status).toBe(303);
  const path = serverPath('alice');
  await untilServer(hub, path, ({ ready }) => ready, 'the server is ready');
  const page = await browser.open(new URL(pressed.headers.location ?? '', hub.url).href);
  expect(page.url).toBe(wanted);
  expect(JSON.parse(page.body)).toMatchObject({ url: '/user/alice/notes/today?x=1' });
});

test('programs get 424 as JSON for a stopped server, and are told when to come again to a starting one', async () => {
  await using hub = await createServerHub(slow);
  const browser = await hub.logIn('alice');
  const ask = () => browser.request(`${hub.url}user/alice/api/x`, { headers: json });
  const stopped = await ask();
  expect(stopped.status).toBe(424);
  expect(JSON.parse(stopped.body)).toMatchObject({ message: 'The server is not running.' });
  await pressStart(hub, browser, '/hub/spawn');
  const starting = await ask();
  expect(starting.status).toBe(424);
  expect(starting.headers['retry-after']).toBe('2');
  expect(JSON.parse(starting.body)).toMatchObject({ message: 'The server is starting.' });
});

test('a starting server has a page that waits for it, with its progress as events', async () => {
  await using hub = await createServerHub(slow);
  const browser = await hub.logIn('alice');
  const pressed = await pressStart(hub, browser, '/hub/spawn/alice?next=/user/alice/x');
  expect(pressed.headers.location).toBe('/hub/spawn-pending/alice?next=%2Fuser%2Falice%2Fx');
  const pending = await browser.open(new URL(pressed.headers.location ?? '', hub.url).href);
  expect(pending.body).toContain('is starting');
  expect(pending.body).toContain('data-progress-url="/hub/api/users/alice/server/progress"');
  expect(pending.body).toContain('data-ready-url="/user/alice/x"');
  expect(pending.body).toContain('data-output-url="/hub/api/users/alice/server/output"');
  const atServer = await browser.open(`${hub.url}user/alice/x`);
  expect(atServer.status).toBe(503);
  expect(atServer.body).toContain('is starting');

  const csrf = /name="csrf-token" content="([^"]+)"/.exec(pending.body)?.[1] ?? '';
  const events = fetch(`${hub.url}hub/api/users/alice/server/progress`, {
    headers: { cookie: browser.cookieHeader(`${hub.url}hub/api/`), 'x-csrf-token': csrf },
  });
  expect((await events).status).toBe(200);
  await tellToGo(hub, 'alice');
  expect((await readEvents(await events)).at(-1)).toMatchObject({ ready: true, progress: 100 });
  expect((await browser.open(pending.url)).url).toBe(`${hub.url}user/alice/x`);
});

test('two browsers that press start together watch one start', async () => {
  await using hub = await createServerHub(slow);
  const browsers = [await hub.logIn('alice'), await hub.logIn('alice')];
  const pages = await Promise.all(browsers.map((browser) => browser.open(`${hub.url}user/alice/`)));
  const pressed = await Promise.all(
    browsers.map((browser, index) => submitFormTo(browser, pages[index]!, /spawn/)),
  );
  for (const { headers } of pressed) {
    expect(headers.location).toBe('/hub/spawn-pending/alice?next=%2Fuser%2Falice%2F');
  }
  await tellToGo(hub, 'alice');
  await untilServer(hub, serverPath('alice'), ({ ready }) => ready, 'the server is ready');
  const opened = await Promise.all(
    browsers.map((browser) => browser.open(`${hub.url}user/alice/`)),
  );
  expect(new Set(opened.map(({ body }) => body)).size).toBe(1);
});

test('a start can be cancelled on its page, and tried again', async () => {
  await using hub = await createServerHub(slow);
  const browser = await hub.logIn('alice');
  const pressed = await pressStart(hub, browser, '/hub/spawn');
  const pending = await browser.open(new URL(pressed.headers.location ?? '', hub.url).href);
  expect(pending.body).toContain('Cancel the start');
  expect((await submitFormTo(browser, pending, /stop/)).status).toBe(303);
  const path = serverPath('alice');
  await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
  expect((await getServer(hub, path)).failure).toBeNull();
  await tellToGo(hub, 'alice');
  await pressStart(hub, browser, '/hub/spawn');
  await untilServer(hub, path, ({ ready }) => ready, 'the server is ready');
});

test('a start that fails says why with the last lines of output, and offers to try again', async () => {
  await using hub = await createServerHub({ Spawner: { cmd: fixtureApp('exit-at-once', '9') } });
  const browser = await hub.logIn('alice');
  const pressed = await pressStart(hub, browser, '/hub/spawn');
  const path = serverPath('alice');
  await untilServer(hub, path, ({ failure }) => failure !== null, 'the start has failed');
  const failed = await browser.open(new URL(pressed.headers.location ?? '', hub.url).href);
  expect(failed.body).toContain('exited (code 9)');
  expect(failed.body).toContain('something is missing');
  expect(failed.body).toContain('Try again');
  expect((await browser.open(`${hub.url}hub/home`)).body).toContain('exited (code 9)');
  expect((await submitFormTo(browser, failed, /spawn/)).status).toBe(303);
});

test('a stop on the home page ends the server', async () => {
  await using hub = await createServerHub();
  const browser = await hub.logIn('alice');
  await startServer(hub, serverPath('alice'));
  const home = await browser.open(`${hub.url}hub/home`);
  const answer = await submitFormTo(browser, home, /^\/hub\/stop/);
  expect(answer.status).toBe(303);
  const path = serverPath('alice');
  await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
  expect((await browser.open(`${hub.url}hub/servers/alice`)).body).toMatch(/Ended <time datetime=/);
  expect((await browser.open(`${hub.url}user/alice/`)).status).toBe(424);
});

describe('the options form', () => {
  const profiles = [
    { name: 'small', display_name: 'Small', description: 'For notes' },
    { name: 'large', display_name: 'Large', environment: { SIZE: 'large' } },
  ];

  test('offers the profiles, refuses what is none, and remembers the choice', async () => {
    await using hub = await createServerHub({
      Spawner: { cmd: fixtureApp('prints-environment'), profiles },
    });
    const browser = await hub.logIn('alice');
    const form = await browser.open(`${hub.url}hub/spawn?next=/user/alice/x`);
    expect(form.body).toContain('For notes');
    const wrong = await submitFormTo(browser, form, /spawn/, { profile: 'huge' });
    expect(wrong.status).toBe(400);
    expect(wrong.body).toContain('There is no such profile');
    const right = await submitFormTo(browser, form, /spawn/, { profile: 'large' });
    expect(right.status).toBe(303);
    await untilServer(hub, serverPath('alice'), ({ ready }) => ready, 'the server is ready');
    const page = await browser.open(new URL(right.headers.location ?? '', hub.url).href);
    expect(JSON.parse(page.body)).toMatchObject({ environment: { SIZE: 'large' } });
    await hub.api(serverPath('alice'), adminToken, { method: 'DELETE' });
    const again = await browser.open(`${hub.url}hub/spawn`);
    expect(again.body).toMatch(/value="large"[^>]*checked/);
  });
});

test('the address /hub/user-redirect leads visitors into their own server', async () => {
  await using hub = await createServerHub();
  const browser = await hub.logIn('alice');
  const redirect = `${hub.url}hub/user-redirect/notes/a%20b?x=1`;
  const stopped = await browser.request(redirect);
  expect(stopped.headers.location).toBe(
    '/hub/spawn/alice?next=%2Fuser%2Falice%2Fnotes%2Fa%2520b%3Fx%3D1',
  );
  await startServer(hub, serverPath('alice'));
  expect((await browser.request(redirect)).headers.location).toBe('/user/alice/notes/a%20b?x=1');
  const foreignProcess = await fetch(redirect, {
    redirect: 'manual',
    headers: { accept: 'text/html' },
  });
  expect(foreignProcess.headers.get('location')).toContain(
    '/hub/login?next=%2Fhub%2Fuser-redirect',
  );
});

test('no user starts, follows or sees the server of another', async () => {
  await using hub = await createServerHub(slow);
  await createUsers(hub, 'bob');
  const [alice, bob] = [await hub.logIn('alice'), await hub.logIn('bob')];
  await pressStart(hub, alice, '/hub/spawn');
  expect((await bob.open(`${hub.url}hub/spawn/alice`)).status).toBe(404);
  expect((await bob.open(`${hub.url}hub/spawn-pending/alice`)).status).toBe(404);
  expect((await bob.open(`${hub.url}user/alice/`)).status).toBe(403);
  const events = await bob.request(`${hub.url}hub/api/users/alice/server/progress`, {
    headers: { accept: 'text/event-stream' },
  });
  expect(events.status).toBe(404);
  const forged = await bob.request(`${hub.url}hub/stop/alice`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: '_csrf=guess',
  });
  expect([403, 404]).toContain(forged.status);
  expect(await getServer(hub, serverPath('alice'))).toMatchObject({ pending: 'spawn' });
});

test('a page elsewhere is never where a start leads to', async () => {
  await using hub = await createServerHub();
  const browser = await hub.logIn('alice');
  for (const next of ['https://evil.example/', '//evil.example/', '/\\evil.example/']) {
    const url = `/hub/spawn/alice?next=${encodeURIComponent(next)}`;
    const pressed = await pressStart(hub, browser, url);
    expect(pressed.headers.location).toBe('/hub/spawn-pending/alice');
    await untilServer(hub, serverPath('alice'), ({ ready }) => ready, 'the server is ready');
    await hub.api(serverPath('alice'), adminToken, { method: 'DELETE' });
  }
});

async function untilRow(hub: TestHub): Promise<void> {
  const isStarted = async () => (await hub.api(serverPath('alice'), adminToken)).status === 200;
  await until(isStarted, 'the start is under way');
}

test('a login starts the default server with start_at_login, and does not depend on it', async () => {
  await using hub = await createTestHub({
    ...serversInHub,
    Hub: {
      ...serversInHub.Hub,
      load_roles: [
        { name: 'user', scopes: ['(no_scope)'] },
        { name: 'student', scopes: ['self'], users: ['alice', 'ben'] },
      ],
    },
    Spawner: { ...serversInHub.Spawner, start_at_login: true },
  });
  const ask = (path: string) => callApi(hub, adminToken, 'GET', path);
  await createUsers(hub, 'alice', 'ben', 'carl');
  await hub.logIn('alice');
  await untilRow(hub);
  await untilServer(hub, serverPath('alice'), ({ ready }) => ready, 'the server of alice runs');
  const { body: started } = await ask('/audit?action=server.start');
  const { body: login } = await ask('/audit?action=login');
  expect(started.entries).toMatchObject([
    { actor: { name: 'alice', session_id: login.entries[0].detail.session } },
  ]);

  // One runs already, one may not be started, and one is refused.
  await hub.logIn('alice');
  await hub.logIn('carl');
  await callApi(hub, adminToken, 'PUT', '/maintenance', { text: 'New disks.' });
  const page = await (await hub.logIn('ben')).open(`${hub.url}hub/home`);
  expect([page.status, page.url]).toEqual([200, `${hub.url}hub/home`]);
  const refusedOf = () =>
    hub.logLines.flatMap(({ msg, user }) =>
      msg === 'server could not be started at login' ? [user] : [],
    );
  await until(() => refusedOf().includes('ben'), 'the start of ben is refused');
  expect(refusedOf()).toEqual(['ben']);
  expect((await ask('/users/carl')).body.servers).toEqual({});
});

test('users choose whether a login starts their server, where the operator lets them', async () => {
  const hubWith = (value: unknown) =>
    createTestHub({
      ...serversInHub,
      Spawner: { ...serversInHub.Spawner, start_at_login: value },
    });
  const path = '/users/alice/start-at-login';
  const read = async (hub: TestHub, name = 'alice') =>
    (await callApi(hub, adminToken, 'GET', `/users/${name}/start-at-login`)).body;
  {
    await using hub = await hubWith('choice');
    await createUsers(hub, 'alice', 'ben');
    expect(await read(hub)).toEqual({ enabled: false, may_choose: true });
    const browser = await hub.logIn('alice');
    const home = await browser.open(`${hub.url}hub/home`);
    const chosen = await submitFormTo(browser, home, /^\/hub\/start-at-login$/);
    expect(chosen.status).toBe(303);
    expect(await read(hub)).toEqual({ enabled: true, may_choose: true });
    expect(await read(hub, 'ben')).toEqual({ enabled: false, may_choose: true });
    expect((await browser.open(`${hub.url}hub/home`)).body).toContain('starts when you log in');
    // The choice of another is none of their business.
    const ben = await hub.logIn('ben');
    expect((await ben.request(`${hub.url}hub/api${path}`)).status).toBe(404);
    expect(await getServer(hub, serverPath('alice')).catch(() => 'none')).toBe('none');
    await hub.logIn('alice');
    await untilRow(hub);
    await untilServer(hub, serverPath('alice'), ({ ready }) => ready, 'the server of alice runs');
    const { body: audit } = await callApi(hub, adminToken, 'GET', '/audit?target=alice');
    expect(audit.entries).toContainEqual(
      expect.objectContaining({
        action: 'server.start_at_login',
        actor: expect.objectContaining({ name: 'alice' }),
        detail: { starts: true },
      }),
    );
    const put = (enabled: unknown) => callApi(hub, adminToken, 'PUT', path, { enabled });
    expect((await put('yes')).status).toBe(400);
    expect(await put(false)).toMatchObject({ status: 200, body: { enabled: false } });
    // It goes with its user.
    await put(true);
    await callApi(hub, adminToken, 'DELETE', '/users/alice');
    await createUsers(hub, 'alice');
    expect(await read(hub)).toEqual({ enabled: false, may_choose: true });
    const left: unknown[] = [];
    await changeDatabase(hub, (database) => {
      left.push(...database.prepare("select key from settings where key like 'user:%'").all());
    });
    expect(left).toEqual([]);
  }
  for (const always of [true, false]) {
    await using hub = await hubWith(always);
    await createUsers(hub, 'alice');
    expect(await read(hub)).toEqual({ enabled: always, may_choose: false });
    expect((await callApi(hub, adminToken, 'PUT', path, { enabled: true })).status).toBe(409);
    const home = await (await hub.logIn('alice')).open(`${hub.url}hub/home`);
    expect(home.body).not.toContain('start-at-login');
  }
});
