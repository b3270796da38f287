import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { changeDatabase } from '../support/hub-database.ts';
import { submitTo } from '../support/pages.ts';
import {
  adminToken,
  callApi,
  createServerHub,
  createUsers,
  fixtureApp,
  serverPath,
  startUntilReady,
  tokenOf,
} from '../support/server-hub.ts';
import { submitLogin, type TestHub, until } from '../support/test-hub.ts';

// Servers that the gateway guards: what a share opens, and what closes it again.

let hub: TestHub;
let appUrl: string;

beforeAll(async () => {
  hub = await createServerHub({
    Hub: {
      allow_named_servers: true,
      load_groups: [{ name: 'crew', users: ['dora'] }],
      load_roles: [
        { name: 'user', scopes: ['self', 'shares!user'] },
        {
          name: 'names-others',
          scopes: ['read:users:name', 'read:groups:name'],
          users: ['alice'],
        },
      ],
    },
    Authenticator: { admin_users: ['root'] },
    Spawner: { cmd: fixtureApp('gateway-app'), access: 'gateway' },
  });
  await createUsers(hub, 'alice', 'bob', 'carol', 'dora');
  await call(adminToken, 'PUT', '/users/alice/servers/lab', {});
  await startUntilReady(hub, serverPath('alice'));
  appUrl = `${hub.url}user/alice/`;
});
afterAll(() => hub[Symbol.asyncDispose]());

beforeEach(async () => {
  for (const path of ['/shares/alice/', '/share-codes/alice/', '/shares/alice/lab']) {
    await call(adminToken, 'DELETE', path);
  }
});

const call = (token: string, method: string, path: string, body?: unknown) =>
  callApi(hub, token, method, path, body);

const share = (body: object) => call(adminToken, 'POST', '/shares/alice/', body);

async function makeCode(body: object = {}): Promise<string> {
  return (await call(adminToken, 'POST', '/share-codes/alice/', body)).body.code;
}

async function statusAt(url: string, token: string): Promise<number> {
  const headers = { authorization: `token ${token}` };
  return (await fetch(url, { headers, redirect: 'manual' })).status;
}

const pageOf = (browser: FakeBrowser, path: string): Promise<BrowserAnswer> =>
  browser.request(`${hub.url}hub/${path}`);

describe('what is shared', () => {
  test('opens this server to its user, and no other one', async () => {
    await startUntilReady(hub, serverPath('alice', 'lab'));
    const [bob, carol] = [await tokenOf(hub, 'bob'), await tokenOf(hub, 'carol')];
    expect(await statusAt(appUrl, bob)).toBe(403);
    await share({ user: 'bob' });
    expect(await statusAt(appUrl, bob)).toBe(200);
    expect(await statusAt(`${appUrl}lab/`, bob)).toBe(403);
    expect(await statusAt(appUrl, carol)).toBe(403);
    expect((await call(bob, 'GET', '/users/alice/server')).status).toBe(404);
    expect((await call(bob, 'GET', '/user')).body.scopes).toContain('access:servers!server=alice/');
    await call(adminToken, 'DELETE', serverPath('alice', 'lab'));
  });

  test('is not passed on by those who have it', async () => {
    await share({ user: 'bob', scopes: ['access:servers', 'servers'] });
    const bob = await tokenOf(hub, 'bob');
    for (const [path, body] of [
      ['/shares/alice/', { user: 'carol' }],
      ['/share-codes/alice/', {}],
    ] as const) {
      expect((await call(bob, 'POST', path, body)).status).toBe(404);
    }
    const browser = await hub.logIn('bob');
    expect((await pageOf(browser, 'share/alice')).status).toBe(404);
  });

  test('can be passed on where that was shared too, and never with more', async () => {
    await share({ user: 'bob', scopes: ['shares'] });
    const bob = await tokenOf(hub, 'bob');
    const codes = '/share-codes/alice/';
    expect((await call(bob, 'POST', codes, {})).status).toBe(200);
    const more = await call(bob, 'POST', codes, { scopes: ['start:servers'] });
    expect(more.status).toBe(403);
    expect(more.body.hint).toContain('start:servers!server=alice/');
    expect((await call(bob, 'POST', '/share-codes/alice/lab', {})).status).toBe(404);
  });

  test('starts and stops the server only where that is part of it', async () => {
    await call(adminToken, 'POST', '/shares/alice/lab', { user: 'bob' });
    const bob = await tokenOf(hub, 'bob');
    const path = serverPath('alice', 'lab');
    expect((await call(bob, 'POST', path)).status).toBe(404);
    const scopes = ['start:servers', 'read:servers'];
    await call(adminToken, 'POST', '/shares/alice/lab', { user: 'bob', scopes });
    expect([201, 202]).toContain((await call(bob, 'POST', path)).status);
    await until(async () => (await call(bob, 'GET', path)).body.ready, 'the server runs');
    expect((await call(bob, 'DELETE', path)).status).toBe(404);
    const { started } = (await call(bob, 'GET', path)).body;
    const browser = await hub.logIn('bob');
    const page = await pageOf(browser, 'servers/alice/lab');
    expect(page.body).not.toContain('>Restart<');
    const _csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    for (const form of ['stop', 'restart-server', 'delete-server']) {
      const answer = await browser.request(`${hub.url}hub/${form}/alice/lab`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ _csrf }).toString(),
      });
      expect(answer.status, form).toBe(404);
    }
    expect((await call(bob, 'GET', path)).body).toMatchObject({ ready: true, started });
    await call(adminToken, 'DELETE', path);
  });

  test('keeps its meaning when the server is renamed, and is gone once it is deleted', async () => {
    const bob = await tokenOf(hub, 'bob');
    const scopesOf = async () =>
      (await call(bob, 'GET', '/user')).body.scopes.filter((scope: string) =>
        scope.startsWith('access:servers!server='),
      );
    const at = (name: string) => serverPath('alice', name);
    await call(adminToken, 'PUT', at('old'), {});
    await call(adminToken, 'POST', '/shares/alice/old', { user: 'bob' });
    expect(await scopesOf()).toEqual(['access:servers!server=alice/old']);
    expect((await call(adminToken, 'PATCH', at('old'), { name: 'new' })).status).toBe(200);
    expect(await scopesOf()).toEqual(['access:servers!server=alice/new']);
    await call(adminToken, 'PUT', at('old'), {});
    expect(await scopesOf()).toEqual(['access:servers!server=alice/new']);
    for (const name of ['new', 'old']) {
      expect((await call(adminToken, 'DELETE', at(name), { remove: true })).status).toBe(204);
    }
    expect(await scopesOf()).toEqual([]);
    await call(adminToken, 'PUT', at('new'), {});
    expect(await scopesOf()).toEqual([]);
    expect((await call(adminToken, 'GET', '/shares/alice/new')).body.items).toEqual([]);
    await call(adminToken, 'DELETE', at('new'), { remove: true });
  });

  test('follows its user and its owner to other names', async () => {
    await createUsers(hub, 'emil', 'fred');
    await call(adminToken, 'POST', '/shares/emil/', { user: 'fred' });
    for (const [from, to] of [
      ['emil', 'emil2'],
      ['fred', 'fred2'],
    ]) {
      expect((await call(adminToken, 'PATCH', `/users/${from}`, { name: to })).status).toBe(200);
    }
    const { items } = (await call(adminToken, 'GET', '/users/fred2/shared')).body;
    expect(items).toMatchObject([{ user: { name: 'fred2' }, server: { user: { name: 'emil2' } } }]);
    await call(adminToken, 'DELETE', '/users/emil2');
    expect((await call(adminToken, 'GET', '/users/fred2/shared')).body.items).toEqual([]);
    await createUsers(hub, 'emil2');
    expect((await call(adminToken, 'GET', '/shares/emil2/')).body.items).toEqual([]);
  });
});

describe('a live connection of one with whom a server is shared', () => {
  const ends: [string, object, () => Promise<unknown>][] = [
    [
      'the share is ended',
      { user: 'dora' },
      () => call(adminToken, 'PATCH', '/shares/alice/', { user: 'dora' }),
    ],
    ['all shares are ended', { group: 'crew' }, () => call(adminToken, 'DELETE', '/shares/alice/')],
    [
      'its user leaves',
      { user: 'dora' },
      async () => call(await tokenOf(hub, 'dora'), 'DELETE', '/users/dora/shared/alice/'),
    ],
    [
      'its user is taken out of the group',
      { group: 'watch' },
      () => call(adminToken, 'DELETE', '/groups/watch/users', { users: ['dora'] }),
    ],
    ['the group is deleted', { group: 'watch' }, () => call(adminToken, 'DELETE', '/groups/watch')],
  ];

  test.each(ends)('is closed when %s', async (_, recipient, end) => {
    await call(adminToken, 'POST', '/groups/watch', {});
    await call(adminToken, 'POST', '/groups/watch/users', { users: ['dora'] });
    expect((await share(recipient)).status).toBe(200);
    const headers = { authorization: `token ${await tokenOf(hub, 'dora')}` };
    const own = { authorization: `token ${await tokenOf(hub, 'alice')}` };
    const open = async (as: Record<string, string>) => {
      const socket = new WebSocket(`${appUrl.replace('http', 'ws')}socket`, { headers: as });
      await once(socket, 'open');
      return socket;
    };
    const [socket, ofOwner] = [await open(headers), await open(own)];
    const closed = once(socket, 'close');
    expect((await end()) as object).toMatchObject({ status: expect.toBeOneOf([200, 204]) });
    await closed;
    expect(ofOwner.readyState).toBe(WebSocket.OPEN);
    ofOwner.terminate();
    expect((await fetch(appUrl, { headers })).status).toBe(403);
    await call(adminToken, 'DELETE', '/groups/watch');
  });
});

describe('a link', () => {
  test.each([
    ['bob', undefined, 400, 400],
    ['bob', 'nosuchcode', 404, 400],
    ['bob', 'CODE', 200, 303],
    ['alice', 'CODE', 403, 400],
  ])('of %s with the code %s: asked %i, accepted %i', async (who, given, asked, accepted) => {
    const code = await makeCode();
    const browser = await hub.logIn(who);
    const query = given === undefined ? '' : `?code=${given.replace('CODE', code)}`;
    expect((await pageOf(browser, `accept-share${query}`)).status).toBe(asked);
    const home = await pageOf(browser, 'home');
    const fields = {
      _csrf: /name="_csrf" value="([^"]+)"/.exec(home.body)?.[1] ?? '',
      ...(given !== undefined && { code: given.replace('CODE', code) }),
    };
    const answer = await browser.request(`${hub.url}hub/accept-share`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    });
    expect(answer.status).toBe(accepted);
    const [made] = (await call(adminToken, 'GET', '/share-codes/alice/')).body.items;
    expect(made.exchange_count).toBe(accepted === 303 ? 1 : 0);
    expect(made.last_exchanged_at === null).toBe(accepted !== 303);
    const { items } = (await call(adminToken, 'GET', '/shares/alice/')).body;
    expect(items).toHaveLength(accepted === 303 ? 1 : 0);
  });

  test('is accepted by several users, and twice by one as once', async () => {
    const code = await makeCode();
    for (const name of ['bob', 'bob', 'carol']) {
      const browser = await hub.logIn(name);
      const page = await pageOf(browser, `accept-share?code=${code}`);
      expect(page.body).toContain('alice shares a server with you');
      expect(page.body).not.toContain('not currently running');
      const accepted = await submitTo(browser, page, '/hub/accept-share');
      expect([accepted.status, accepted.headers.location]).toEqual([303, '/user/alice/']);
    }
    const { items } = (await call(adminToken, 'GET', '/shares/alice/')).body;
    expect(items.map(({ user }: { user: { name: string } }) => user.name)).toEqual([
      'bob',
      'carol',
    ]);
    const [made] = (await call(adminToken, 'GET', '/share-codes/alice/')).body.items;
    expect(made.exchange_count).toBe(3);
  });

  test('leads through the login back to the question, and then to the page wanted', async () => {
    const code = await makeCode();
    const path = `/hub/accept-share?code=${code}&next=${encodeURIComponent('/user/alice/lab?x=1')}`;
    const browser = new FakeBrowser();
    const first = await browser.request(new URL(path, hub.url).href);
    expect(first.status).toBe(302);
    expect(first.headers.location).toBe(`/hub/login?next=${encodeURIComponent(path)}`);
    const loggedIn = await submitLogin(browser, hub.url, 'bob', 'test', path);
    const asked = await browser.request(new URL(loggedIn.headers.location ?? '', hub.url).href);
    const accepted = await submitTo(browser, asked, '/hub/accept-share');
    expect(accepted.headers.location).toBe('/user/alice/lab?x=1');
  });

  test.each([
    [undefined, '/user/alice/'],
    ['https://example.com/', '/user/alice/'],
    ['//example.com/', '/user/alice/'],
    ['/\\example.com/', '/user/alice/'],
    ['javascript:alert(1)', '/user/alice/'],
    ['/hub', '/hub'],
    ['/user/alice/lab/tree/notebook.ipynb?param=5', '/user/alice/lab/tree/notebook.ipynb?param=5'],
  ])('with next=%s leads to %s', async (next, target) => {
    const browser = await hub.logIn('bob');
    const query = new URLSearchParams({ code: await makeCode(), ...(next && { next }) });
    const page = await pageOf(browser, `accept-share?${query}`);
    const accepted = await submitTo(browser, page, '/hub/accept-share');
    expect([accepted.status, accepted.headers.location]).toEqual([303, target]);
    // JupyterHub's clients send the form to the address of the page, with nothing in it but the token.
    const csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const again = await browser.request(page.url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ _csrf: csrf }).toString(),
    });
    expect([again.status, again.headers.location]).toEqual([303, target]);
  });

  test('ends when it expires, and when it or its server is deleted', async () => {
    const browser = await hub.logIn('bob');
    const answerTo = async (code: string) =>
      (await pageOf(browser, `accept-share?code=${code}`)).status;
    const code = await makeCode({ expires_in: 60 });
    const asked = await pageOf(browser, `accept-share?code=${code}`);
    expect(asked.status).toBe(200);
    await changeDatabase(hub, (database) =>
      database.exec('update share_codes set expires_at = expires_at - 61000'),
    );
    expect(await answerTo(code)).toBe(404);
    expect((await submitTo(browser, asked, '/hub/accept-share')).status).toBe(400);
    expect((await call(adminToken, 'GET', '/shares/alice/')).body.items).toEqual([]);
    const deleted = await makeCode();
    expect(await answerTo(deleted)).toBe(200);
    await call(adminToken, 'DELETE', `/share-codes/alice/?code=${deleted}`);
    expect(await answerTo(deleted)).toBe(404);
    expect((await call(adminToken, 'GET', '/share-codes/alice/')).body.items).toEqual([]);

    await call(adminToken, 'PUT', serverPath('alice', 'brief'), {});
    const ofNamed = (await call(adminToken, 'POST', '/share-codes/alice/brief', {})).body.code;
    expect(await answerTo(ofNamed)).toBe(200);
    await call(adminToken, 'DELETE', serverPath('alice', 'brief'), { remove: true });
    expect(await answerTo(ofNamed)).toBe(404);
  });
});

describe('the pages', () => {
  test('share a server with a user, show it there, and take it back', async () => {
    const [alice, bob] = [await hub.logIn('alice'), await hub.logIn('bob')];
    expect((await pageOf(bob, 'home')).body).not.toContain('Shared with you');
    expect((await pageOf(alice, 'home')).body).toContain('href="/hub/share/alice"');
    const page = await pageOf(alice, 'share/alice');
    const form = { kind: 'user', name: 'bob', level: 'open' };
    const shared = await submitTo(alice, page, '/hub/share/alice', form);
    expect(shared.status).toBe(303);
    expect((await pageOf(alice, 'share/alice')).body).toContain('Remove access: bob');

    const home = await pageOf(bob, 'home');
    expect(home.body).toContain('Shared with you');
    expect(home.body).toContain('href="/user/alice/" aria-label="Open the server of alice"');

    const list = await pageOf(alice, 'share/alice');
    await submitTo(alice, list, '/hub/end-share/alice');
    expect((await pageOf(bob, 'home')).body).not.toContain('Shared with you');

    const toGroup = { ...form, kind: 'group', name: 'crew' };
    await submitTo(alice, page, '/hub/share/alice', toGroup);
    const dora = await hub.logIn('dora');
    expect((await pageOf(dora, 'home')).body).toContain('By group crew');
  });

  test('let the other one leave, and say by which group it is shared', async () => {
    await share({ user: 'bob' });
    await share({ group: 'crew' });
    const [bob, dora] = [await hub.logIn('bob'), await hub.logIn('dora')];
    const left = await submitTo(bob, await pageOf(bob, 'home'), '/hub/leave-shared');
    expect(left.status).toBe(303);
    expect((await pageOf(bob, 'home')).body).not.toContain('Shared with you');
    const { body } = await pageOf(dora, 'home');
    expect(body).toContain('By group crew');
    expect(body).not.toContain('leave-shared');
  });

  test('show a new link once, and who is there', async () => {
    const alice = await hub.logIn('alice');
    const page = await pageOf(alice, 'share/alice');
    const form = { expires_in: '3600', link_level: 'start' };
    const made = await alice.follow(
      await submitTo(alice, page, '/hub/make-share-link/alice', form),
    );
    const [, code] = /accept-share\?code=([\w-]{43})/.exec(made.body) ?? [];
    expect(code).toBeDefined();
    expect((await pageOf(alice, 'share/alice')).body).not.toContain(code);

    const bob = await hub.logIn('bob');
    await submitTo(bob, await pageOf(bob, `accept-share?code=${code}`), '/hub/accept-share');
    const headers = { authorization: `token ${await tokenOf(hub, 'bob')}` };
    const socket = new WebSocket(`${appUrl.replace('http', 'ws')}socket`, { headers });
    await once(socket, 'open');
    expect((await pageOf(alice, 'share/alice')).body).toMatch(/bob <span[^>]*>There now/);
    socket.terminate();
  });

  test('tell what is wrong with a name, and nothing of names to those who may not know them', async () => {
    const [alice, carol] = [await hub.logIn('alice'), await hub.logIn('carol')];
    const page = await pageOf(alice, 'share/alice');
    const form = { kind: 'user', name: 'nobody', level: 'open' };
    const wrong = await submitTo(alice, page, '/hub/share/alice', form);
    expect(wrong.status).toBe(400);
    expect(wrong.body).toContain('There is no such user.');

    const own = await pageOf(carol, 'share/carol');
    expect(own.body).toContain('You may not name users or groups');
    const token = await tokenOf(hub, 'carol');
    const answers = await Promise.all(
      ['bob', 'nobody'].map((user) => call(token, 'POST', '/shares/carol/', { user })),
    );
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]?.status).toBe(403);
  });

  test('say to those who may no longer share that they may not; what they shared stays', async () => {
    const own = await tokenOf(hub, 'alice');
    expect((await call(own, 'POST', '/shares/alice/', { user: 'bob' })).status).toBe(200);
    await hub.reload({
      Hub: { cleanup_servers: true, allow_named_servers: true },
      Authenticator: { admin_users: ['root'] },
      Spawner: { cmd: fixtureApp('gateway-app'), access: 'gateway' },
    });
    const bob = await hub.logIn('bob');
    expect((await pageOf(bob, 'home')).body).not.toContain('Share…');
    const page = await pageOf(bob, 'share/bob');
    expect(page.status).toBe(200);
    expect(page.body).toContain('You may not share servers on this hub.');
    const token = await tokenOf(hub, 'bob');
    expect((await call(token, 'POST', '/share-codes/bob/', {})).status).toBe(403);
    expect((await call(own, 'DELETE', '/shares/alice/')).status).toBe(403);
    expect(await statusAt(appUrl, token)).toBe(200);
    expect((await call(adminToken, 'DELETE', '/shares/alice/')).status).toBe(204);
    expect(await statusAt(appUrl, token)).toBe(403);
  });
});
