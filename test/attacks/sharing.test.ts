import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import WebSocket from 'ws';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import {
  adminToken,
  callApi,
  createUsers,
  fixtureApp,
  serverPath,
  startUntilReady,
  tokenOf,
} from '../support/server-hub.ts';
import { createSubdomainHub, originBelow } from '../support/subdomain-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

// Servers that check their visitors themselves, behind the door and with an origin for each user. Whoever gets a link
// or a share of one may be an attacker, and so may its owner.

let hub: TestHub;
const rooms = ['alice', 'evil'];
const serverOf = (name: string) => `${originBelow(hub, name)}/user/${name}/`;

beforeAll(async () => {
  hub = await createSubdomainHub({
    Hub: {
      allow_named_servers: true,
      load_roles: [{ name: 'user', scopes: ['self', 'shares!user'] }],
    },
    Authenticator: { admin_users: ['root'] },
    Spawner: { access: 'server', cmd: fixtureApp('hostile-server') },
  });
  await createUsers(hub, ...rooms, 'bob', 'carol');
  await Promise.all(rooms.map((name) => startUntilReady(hub, serverPath(name))));
});
afterAll(() => hub[Symbol.asyncDispose]());
beforeEach(() => call(adminToken, 'DELETE', '/shares/alice/'));

const call = (token: string, method: string, path: string, body?: unknown) =>
  callApi(hub, token, method, path, body);

const makeCode = async (owner = 'alice'): Promise<string> =>
  (await call(adminToken, 'POST', `/share-codes/${owner}/`, {})).body.code;

const shareCount = async (): Promise<number> =>
  (await call(adminToken, 'GET', '/shares/alice/')).body._pagination.total;

async function accept(browser: FakeBrowser, code: string) {
  const page = await browser.request(`${hub.url}hub/accept-share?code=${code}`);
  return submitTo(browser, page, '/hub/accept-share');
}

test('an accepted link opens this server at its own origin, once its user was warned, and no other', async () => {
  const bob = await hub.logIn('bob');
  expect((await bob.open(serverOf('alice'))).status).toBe(403);
  const code = await makeCode();
  const page = await bob.request(`${hub.url}hub/accept-share?code=${code}`);
  expect(page.body).toContain('never enter a password there');
  const accepted = await submitTo(bob, page, '/hub/accept-share');
  expect([accepted.status, accepted.headers.location]).toEqual([303, serverOf('alice')]);
  const opened = await bob.open(serverOf('alice'));
  expect([opened.status, opened.url]).toEqual([200, serverOf('alice')]);
  expect((await bob.open(serverOf('evil'))).status).toBe(403);
  expect((await (await hub.logIn('carol')).open(serverOf('alice'))).status).toBe(403);
});

test('what goes on through the door ends with the share', async () => {
  await call(adminToken, 'POST', '/shares/alice/', { user: 'bob' });
  const headers = { authorization: `token ${await tokenOf(hub, 'bob')}` };
  const { port, host } = new URL(serverOf('alice'));
  const socket = new WebSocket(`ws://127.0.0.1:${port}/user/alice/socket`, {
    headers: { ...headers, host },
  });
  await Promise.race([
    once(socket, 'open'),
    once(socket, 'unexpected-response').then(([, { statusCode }]) => {
      throw new Error(`the WebSocket is answered with ${statusCode}`);
    }),
  ]);
  const closed = once(socket, 'close');
  await call(adminToken, 'PATCH', '/shares/alice/', { user: 'bob' });
  await closed;
  const bob = await hub.logIn('bob');
  expect((await bob.open(serverOf('alice'))).status).toBe(403);
});

test('a form of another site, or without the token of a page, accepts nothing', async () => {
  const bob = await hub.logIn('bob');
  const code = await makeCode();
  const page = await bob.request(`${hub.url}hub/accept-share?code=${code}`);
  const csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
  const post = (fields: object, headers: Record<string, string> = {}) =>
    bob.request(`${hub.url}hub/accept-share?code=${code}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams({ ...fields }).toString(),
    });
  expect((await post({ code })).status).toBe(403);
  expect((await post({ code, _csrf: 'x'.repeat(43) })).status).toBe(403);
  for (const origin of [originBelow(hub, 'evil'), 'https://example.com', 'null']) {
    expect((await post({ code, _csrf: csrf }, { origin })).status, origin).toBe(403);
  }
  expect((await post({ code, _csrf: csrf }, { 'sec-fetch-site': 'same-site' })).status).toBe(403);
  // To open the address changes nothing.
  for (const mode of ['navigate', 'cors']) {
    await bob.request(page.url, { headers: { 'sec-fetch-mode': mode } });
  }
  expect(await shareCount()).toBe(0);
  expect((await post({ code, _csrf: csrf })).status).toBe(303);
});

test('a script of another origin, or a frame, does not get to read what a link is for', async () => {
  const bob = await hub.logIn('bob');
  const url = `${hub.url}hub/accept-share?code=${await makeCode()}`;
  for (const headers of [
    { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-site' },
  ]) {
    const answer = await bob.request(url, { headers });
    expect([answer.status, answer.body.includes('alice')]).toEqual([403, false]);
  }
});

test('codes are guessed at 30 times a minute, and others are not held up', async () => {
  const carol = await hub.logIn('carol');
  const tryAt = (browser: FakeBrowser, code: string) =>
    browser.request(`${hub.url}hub/accept-share?code=${code}`);
  const code = await makeCode();
  for (let number = 0; number < 30; number += 1) {
    expect((await tryAt(carol, `guess-${number}`)).status).toBe(404);
  }
  const refused = await tryAt(carol, 'guess');
  expect(refused.status).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  // Even a right one tells nothing now.
  expect((await tryAt(carol, code)).status).toBe(429);
  expect((await tryAt(await hub.logIn('bob'), code)).status).toBe(200);
});

test('the answer to a code tells nothing of how wrong it is', async () => {
  const bob = await hub.logIn('bob');
  const code = await makeCode();
  const bodies: string[] = [];
  for (const wrong of ['x', code.slice(1), `${code}x`, 'y'.repeat(10_000), "' or 1=1 --"]) {
    const query = new URLSearchParams({ code: wrong });
    const { status, body } = await bob.request(`${hub.url}hub/accept-share?${query}`);
    expect(status).toBe(404);
    bodies.push(/<main[\s\S]*<\/main>/.exec(body)?.[0].replace(/[0-9a-f-]{16,}/g, '') ?? '');
  }
  expect(new Set(bodies).size).toBe(1);
});

test('no code is in the log, in a Referer or as it is in the database', async () => {
  const bob = await hub.logIn('bob');
  const code = await makeCode();
  const page = await bob.request(`${hub.url}hub/accept-share?code=${code}`);
  expect(page.headers['referrer-policy']).toBe('strict-origin');
  using database = new DatabaseSync(join(hub.directory, 'hub.sqlite'));
  const rows = database.prepare('select * from share_codes').all();
  expect(rows.length).toBeGreaterThan(0);
  expect(JSON.stringify(rows)).not.toContain(code);
  const accepted = await submitTo(bob, page, '/hub/accept-share');
  expect(accepted.headers['referrer-policy']).toBe('strict-origin');
  await call(adminToken, 'DELETE', `/share-codes/alice/?code=${code}`);
  await bob.request(`${hub.url}hub/logout`);
  const next = encodeURIComponent(`/hub/accept-share?code=${code}`);
  await bob.request(`${hub.url}hub/login?next=${next}`);
  expect(JSON.stringify(hub.logLines)).not.toContain(code);
  const list = await call(adminToken, 'GET', '/share-codes/alice/');
  expect(JSON.stringify(list.body)).not.toContain(code);
});

test('whoever has a share gets no further with it', async () => {
  await call(adminToken, 'PUT', '/users/alice/servers/lab', {});
  await call(adminToken, 'POST', '/shares/alice/', { user: 'bob', scopes: ['servers'] });
  const bob = await tokenOf(hub, 'bob');
  const attempts: [method: string, path: string, body?: unknown][] = [
    ['GET', '/users/alice/servers/lab'],
    ['POST', '/users/alice/servers/lab'],
    ['PATCH', '/users/alice/servers/lab', { name: 'mine' }],
    ['PUT', '/users/alice/servers/more', {}],
    ['POST', '/users/alice/tokens', {}],
    ['GET', '/users/alice/tokens'],
    ['PATCH', '/users/alice', { admin: true }],
    ['POST', '/shares/alice/', { user: 'carol' }],
    ['GET', '/shares/alice/'],
    ['POST', '/share-codes/alice/', {}],
    ['GET', '/users/carol/shared'],
    ['DELETE', '/users/carol/shared/alice/'],
  ];
  for (const [method, path, body] of attempts) {
    const { status } = await call(bob, method, path, body);
    expect([method, path, status]).toEqual([method, path, expect.toBeOneOf([403, 404])]);
  }
  // Of its owner it shows the name and the shared server, and nothing else.
  const { body: owner } = await call(bob, 'GET', '/users/alice');
  expect(Object.keys(owner).toSorted()).toEqual(['kind', 'name', 'servers']);
  expect(Object.keys(owner.servers)).not.toContain('lab');
  // What is shared is not more in a token than without one.
  const wanted = { scopes: ['servers!user=alice'] };
  expect((await call(bob, 'POST', '/users/bob/tokens', wanted)).status).toBe(400);
});

test('a share that was pushed on a user is no way to what is theirs', async () => {
  const evil = await tokenOf(hub, 'evil');
  expect((await call(evil, 'POST', '/shares/evil/', { user: 'alice' })).status).toBe(403);
  const code = (await call(evil, 'POST', '/share-codes/evil/', {})).body.code as string;
  const alice = await hub.logIn('alice');
  await accept(alice, code);
  expect((await call(evil, 'GET', '/users/alice')).status).toBe(404);
  expect((await evilOpens(serverOf('alice'))).status).toBe(403);
});

async function evilOpens(url: string) {
  return (await hub.logIn('evil')).open(url);
}
