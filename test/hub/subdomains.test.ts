import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { serviceHostLabel, userHostLabel } from '../../src/platform/protocol/host-label.ts';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { getRaw, sendRaw } from '../support/raw-request.ts';
import { requires } from '../support/requires.ts';
import {
  adminToken,
  createUsers,
  fixtureApp,
  guarded,
  serverPath,
  startUntilReady,
} from '../support/server-hub.ts';
import { usersOpenServices } from '../support/services.ts';
import {
  createSubdomainHub,
  createTlsSubdomainHub,
  originBelow,
} from '../support/subdomain-hub.ts';
import { createTestHub, submitForm, submitLogin, type TestHub } from '../support/test-hub.ts';

/** Whose servers run: plain, odd, of the greatest length, and some that look like hosts of the operator. */
const users = [
  'alice',
  'ada.ünal@example.org',
  'x'.repeat(255),
  '李'.repeat(170),
  'www',
  'xn--bcher-kva',
  'wiki--service',
];

let wiki: Awaited<ReturnType<typeof startUpstream>>;
let hub: TestHub;

beforeAll(async () => {
  wiki = await startUpstream((req, res) => void res.end(`wiki for ${req.headers['x-hub-user']}`));
  hub = await createSubdomainHub({
    Hub: {
      trusted_proxies: ['127.0.0.9'],
      load_roles: usersOpenServices,
      services: [
        { name: 'wiki', url: wiki.url, access: 'gateway', api_token: 'token-of-the-wiki' },
      ],
    },
    Authenticator: { admin_users: ['root'] },
    Spawner: { access: 'server', cmd: guarded(...fixtureApp('plain-web-app')) },
  });
  await createUsers(hub, ...users, 'idle');
  await Promise.all(users.map((name) => startUntilReady(hub, serverPath(name))));
});
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]();
  await wiki?.[Symbol.asyncDispose]();
});

const alice = () => originBelow(hub, 'alice');
const hostOf = (origin: string) => new URL(origin).host;

describe('an origin of one’s own', () => {
  test('is where a guarded service is opened, with a cookie of that host', async () => {
    const browser = await hub.logIn('alice');
    const origin = originBelow(hub, 'wiki--service');
    const page = await browser.open(`${origin}/services/wiki/x?y=1`);
    expect(page).toMatchObject({
      status: 200,
      body: 'wiki for alice',
      url: `${origin}/services/wiki/x?y=1`,
    });
    expect(browser.cookieHeader(`${hub.url}services/wiki/`)).not.toContain('service-wiki');
    expect(browser.cookieHeader(`${origin}/services/wiki/`)).toMatch(/\bservice-wiki=/);
    expect(browser.cookieHeader(`${origin}/`)).not.toContain('hub-');
  });

  test.each(users)('is where the server of %s logs its visitors in', async (name) => {
    const label = userHostLabel(name);
    const browser = await hub.logIn(name);
    const path = `/user/${encodeURIComponent(name).replace('%40', '@')}/`;
    const page = await browser.open(`${originBelow(hub, label)}${path}`);
    expect(page.status).toBe(200);
    expect(page.url).toBe(`${originBelow(hub, label)}${path}`);
    const { environment } = JSON.parse(page.body) as { environment: Record<string, string> };
    expect(environment).toMatchObject({
      HUB_HOST: hub.url.slice(0, -1),
      HUB_PUBLIC_URL: originBelow(hub, label) + path,
    });
  });

  test('is where the pages and the API of the hub point', async () => {
    const browser = await hub.logIn('alice');
    const home = await browser.open(`${hub.url}hub/home`);
    expect(home.body).toContain(`href="${alice()}/user/alice/"`);
    expect(home.body).toContain(`href="${originBelow(hub, 'wiki--service')}/services/wiki/"`);
    const model = (await (await hub.api('/users/alice', adminToken)).json()) as {
      server: string;
      servers: Record<string, { url: string; full_url: string }>;
    };
    expect(model.server).toBe(`${alice()}/user/alice/`);
    expect(model.servers['']).toMatchObject({
      url: `${alice()}/user/alice/`,
      full_url: `${alice()}/user/alice/`,
    });
    const progress = await hub.api('/users/alice/server/progress', adminToken);
    expect(await progress.text()).toContain(`"url":"${alice()}/user/alice/"`);
  });

  test('takes a WebSocket of its own pages and of no other', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(`${alice()}/user/alice/`);
    const handshake = (origin: string) =>
      new Promise<number>((resolve) => {
        const { port } = new URL(hub.url);
        const socket = new WebSocket(`ws://127.0.0.1:${port}/user/alice/echo`, {
          headers: {
            host: hostOf(alice()),
            origin,
            cookie: browser.cookieHeader(`${alice()}/user/alice/`),
          },
        });
        socket.on('open', () => {
          socket.terminate();
          resolve(101);
        });
        socket.on('unexpected-response', (_request, response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        });
        socket.on('error', () => undefined);
      });
    expect(await handshake(alice())).toBe(101);
    for (const origin of [hub.url.slice(0, -1), originBelow(hub, 'evil'), 'http://evil.example']) {
      expect(await handshake(origin)).toBe(403);
    }
  });
});

describe('the door of a server', () => {
  test('sends a browser to the hub and lets it in with what comes back, in three steps', async () => {
    const browser = await hub.logIn('alice');
    const page = `${alice()}/user/alice/x?y=1`;
    const asked = await browser.request(page);
    expect(asked.headers.location).toMatch(`${hub.url}hub/open-server?next=`);
    const ticket = await browser.request(asked.headers.location ?? '');
    expect(ticket.headers.location).toMatch(`${alice()}/hub/arrive?ticket=`);
    const arrived = await browser.request(ticket.headers.location ?? '');
    expect(arrived.headers.location).toBe('/user/alice/x?y=1');
    const login = await browser.request(page);
    expect(login.headers.location).toMatch(
      /^http:\/\/hub\.localhost:\d+\/hub\/api\/oauth2\/authorize/,
    );
    expect(browser.cookieHeader(`${originBelow(hub, 'evil')}/user/evil/`)).toBe('');
  });

  test('takes a ticket from the browser that it sent, on its own host and once', async () => {
    const browser = await hub.logIn('alice');
    const asked = await browser.request(`${alice()}/user/alice/`);
    const { headers } = await browser.request(asked.headers.location ?? '');
    const ticket = headers.location ?? '';
    expect((await new FakeBrowser().request(ticket)).status).toBe(403);
    const remote = ticket.replace('alice.', 'idle.');
    for (const url of [remote, ticket.replace(/.$/, ''), ticket.split('?')[0] ?? '']) {
      const answer = await browser.request(url);
      expect([302, 403]).toContain(answer.status);
      expect(answer.headers['set-cookie']).toBeUndefined();
    }
    expect((await browser.request(ticket)).status).toBe(302);
    expect((await browser.request(ticket)).status).toBe(403);
  });

  test('believes no session id that a visitor names, as a server that has seen it could', async () => {
    const browser = await hub.logIn('alice');
    const sessionId = browser.cookie('hub-session-id')?.value ?? '';
    expect(sessionId).not.toBe('');
    const foreignProcess = new FakeBrowser();
    for (const name of ['hub-session-id', 'hub-handed-off', '__Host-hub-handed-off'])
      foreignProcess.setCookie(name, sessionId);
    const answer = await foreignProcess.request(`${alice()}/user/alice/`);
    expect(answer.headers.location).toMatch(`${hub.url}hub/open-server?next=`);
  });

  test('asks before an administrator opens it, and once', async () => {
    const browser = await hub.logIn('root');
    const page = `${alice()}/user/alice/`;
    const question = await browser.open(page);
    expect(question.body).toContain('Open the server of alice?');
    const yes = await submitForm(browser, question, { decision: 'allow' });
    const opened = await browser.open(yes.headers.location ?? '');
    expect(opened).toMatchObject({ status: 200, url: page });
    expect(await browser.open(page)).toMatchObject({ status: 200, url: page });
  });

  test('is closed to a user without the right, and after the logout', async () => {
    const idle = await hub.logIn('idle');
    expect((await idle.open(`${alice()}/user/alice/`)).status).toBe(403);
    const browser = await hub.logIn('alice');
    expect((await browser.open(`${alice()}/user/alice/`)).status).toBe(200);
    await hub.api('/users/alice/sessions', adminToken, { method: 'DELETE' });
    const after = await browser.open(`${alice()}/user/alice/`);
    expect(after.url).toContain('/hub/login');
  });
});

describe('a login', () => {
  test('leads back to the server it was begun for', async () => {
    const browser = new FakeBrowser();
    const login = await browser.open(`${alice()}/user/alice/lab?x=1`);
    expect(new URL(login.url).origin).toBe(hub.url.slice(0, -1));
    const next = new URL(login.url).searchParams.get('next') ?? '';
    const done = await submitLogin(browser, hub.url, 'alice', 'test', next);
    const page = await browser.open(new URL(done.headers.location ?? '', hub.url).href);
    expect(page).toMatchObject({ status: 200, url: `${alice()}/user/alice/lab?x=1` });
  });

  test.each([
    () => ['/user/alice/a', `${alice()}/user/alice/a`] as const,
    () => [`${alice()}/user/alice/a?b#c`, `${alice()}/user/alice/a?b#c`] as const,
    () => [`${hub.url}user/alice/a`, `${alice()}/user/alice/a`] as const,
    () =>
      [
        `${originBelow(hub, 'wiki--service')}/services/wiki/`,
        `${originBelow(hub, 'wiki--service')}/services/wiki/`,
      ] as const,
  ])('leads to what it asked for on a host of the hub (%#)', async (row) => {
    const [next, expected] = row();
    const done = await submitLogin(new FakeBrowser(), hub.url, 'alice', 'test', next);
    expect(done.headers.location).toBe(expected);
  });

  test.each([
    () => `${originBelow(hub, 'evil')}/user/alice/`,
    () => `${alice()}/hub/token`,
    () => `${alice()}.evil.example/user/alice/`,
    () => `${alice()}@evil.example/user/alice/`,
    () => `${alice()}:1/user/alice/`,
    () => `${alice().replace('http:', 'https:')}/user/alice/`,
    () => `${alice()}/user/alice/../../hub/token\\@evil.example`,
    () => `//${hostOf(alice())}/user/alice/`,
    () => `${originBelow(hub, 'x.alice')}/user/alice/`,
    () => 'http://evil.example/user/alice/',
  ])('leads nowhere else (%#)', async (next) => {
    const done = await submitLogin(new FakeBrowser(), hub.url, 'alice', 'test', next());
    expect(new URL(done.headers.location ?? '', hub.url).href).toBe(`${hub.url}hub/home`);
  });

  test('that asks for its own server goes to its host', async () => {
    const browser = await hub.logIn('alice');
    const answer = await browser.request(`${hub.url}hub/user-redirect/lab?x=1`);
    expect(answer.headers.location).toBe(`${alice()}/user/alice/lab?x=1`);
  });

  test('leads a browser on by a page, since a form may end at no other host', async () => {
    const browser = new FakeBrowser();
    const login = await browser.request(`${hub.url}hub/login?next=%2Fuser%2Falice%2F`);
    expect(login.headers['content-security-policy']).toContain("form-action 'self';");
    const typed = { username: 'alice', password: 'test' };
    const answer = await submitForm(browser, login, typed, { 'sec-fetch-dest': 'document' });
    expect(answer.status).toBe(200);
    expect(answer.headers.location).toBeUndefined();
    expect(answer.headers['refresh']).toBe(`0;url=${alice()}/user/alice/`);
    expect(answer.body).toContain(`href="${alice()}/user/alice/"`);
    // Where the button that starts a server leads when it runs already.
    const url = `${hub.url}hub/spawn-pending/alice`;
    const ready = await browser.request(url, { headers: { 'upgrade-insecure-requests': '1' } });
    expect(ready.headers['refresh']).toBe(`0;url=${alice()}/user/alice/`);
    expect((await browser.request(url)).headers.location).toBe(`${alice()}/user/alice/`);
  });
});

describe('on the wrong host', () => {
  const browser = new FakeBrowser();

  test.each([
    () => [`${hub.url}user/alice/a%20b?c=d`, `${alice()}/user/alice/a%20b?c=d`] as const,
    () => [`${originBelow(hub, 'evil')}/user/alice/`, `${alice()}/user/alice/`] as const,
    () =>
      [`${hub.url}services/wiki/`, `${originBelow(hub, 'wiki--service')}/services/wiki/`] as const,
    () =>
      [`${alice()}/services/wiki`, `${originBelow(hub, 'wiki--service')}/services/wiki`] as const,
    () => [`${alice()}/hub/token?a=b`, `${hub.url}hub/token?a=b`] as const,
    () => [`${alice()}/hub/api/user`, `${hub.url}hub/api/user`] as const,
    () => [`${alice()}/`, hub.url] as const,
    () => [`${originBelow(hub, 'idle')}/user/idle/x`, `${hub.url}hub/user/idle/x`] as const,
    () => [`${hub.url}user/idle/x`, `${hub.url}hub/user/idle/x`] as const,
  ])('a browser is sent to the right one (%#)', async (row) => {
    const [from, to] = row();
    const answer = await browser.request(from);
    expect(answer.headers.location).toBe(to);
    expect([302, 303]).toContain(answer.status);
    expect(answer.headers['set-cookie']).toBeUndefined();
  });

  test.each([
    () => [hub.url, '/user/alice/'] as const,
    () => [alice(), '/hub/api/user'] as const,
    () => [alice(), '/hub/login'] as const,
    () => [alice(), '/hub/api/oauth2/token'] as const,
    () => [alice(), '/services/wiki/'] as const,
    () => [originBelow(hub, 'wiki--service'), '/user/alice/'] as const,
  ])('everything else is refused (%#)', async (row) => {
    const [origin, path] = row();
    const host = `Host: ${hostOf(origin)}`;
    const length = 'Content-Length: 0';
    for (const head of [
      `POST ${path} HTTP/1.1\r\n${host}\r\n${length}\r\nAccept: text/html`,
      `GET ${path} HTTP/1.1\r\n${host}\r\nSec-Fetch-Mode: cors`,
      `GET ${path} HTTP/1.1\r\n${host}\r\nAuthorization: token ${adminToken}`,
      `GET ${path} HTTP/1.1\r\n${host}\r\nAccept: text/html\r\nX-Requested-With: XMLHttpRequest`,
    ]) {
      const answer = await sendRaw(hub.url, `${head}\r\nConnection: close\r\n\r\n`);
      expect(answer.status).toBe(421);
      expect(answer.text.toLowerCase()).not.toContain('set-cookie');
    }
  });

  test('no WebSocket opens', async () => {
    const lines = [
      `Host: ${hostOf(hub.url)}`,
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ];
    const head = ['GET /user/alice/echo HTTP/1.1', ...lines].join('\r\n');
    expect((await sendRaw(hub.url, `${head}\r\n\r\n`)).status).toBe(421);
  });

  test('the page of an error finds its style', async () => {
    const answer = await browser.request(`${alice()}/user/alice/`, {
      method: 'POST',
      headers: { host: hostOf(originBelow(hub, 'evil')) },
    });
    expect(answer.status).toBe(421);
    const [, style = ''] = /href="(\/hub\/static\/[^"]+\.css)"/.exec(answer.body) ?? [];
    expect((await browser.request(`${alice()}${style}`)).status).toBe(200);
  });

  test('a program learns on either host that a server is stopped', async () => {
    for (const origin of [originBelow(hub, 'idle'), hub.url.slice(0, -1)]) {
      const answer = await getRaw(hub.url, '/user/idle/api/status', [`Host: ${hostOf(origin)}`]);
      expect(answer.status).toBe(424);
    }
  });
});

describe('the Host header', () => {
  test.each([
    () => hostOf(alice()),
    () => 'alice.hub.localhost',
    () => 'ALICE.Hub.LocalHost',
    () => 'alice.hub.localhost.',
    () => 'alice.hub.localhost.:1',
  ])('names a host in any spelling (%#)', async (host) => {
    const answer = await getRaw(hub.url, '/user/alice/', [`Host: ${host()}`]);
    expect(answer.status).toBe(302);
    expect(answer.text).toContain('/hub/api/oauth2/authorize');
  });

  test.each([
    'evil.example',
    '127.0.0.1',
    '[::1]',
    '[::1]:8000',
    'hub.localhost.evil.example',
    'evilhub.localhost',
    'alice.hub.localhost@evil.example',
    'evil.example:x@alice.hub.localhost',
    'alice.hub.localhost:port',
    'alice..hub.localhost:',
    '',
  ])('that names none of the hub’s is refused, and nothing is made of it: %s', async (host) => {
    for (const target of ['/user/alice/', '/hub/login', '/']) {
      const lines = [`Host: ${host}`, 'Accept: text/html', 'Sec-Fetch-Mode: navigate'];
      const answer = await getRaw(hub.url, target, lines);
      expect([400, 421]).toContain(answer.status);
      expect(answer.text).not.toContain('evil');
    }
  });

  test('that is absent is refused, and one that stands twice', async () => {
    expect((await sendRaw(hub.url, 'GET /user/alice/ HTTP/1.0\r\n\r\n')).status).toBe(421);
    const host = `Host: ${hostOf(alice())}`;
    expect((await getRaw(hub.url, '/user/alice/', [host, host])).status).toBe(400);
  });

  test('of a proxy that is not trusted does not count', async () => {
    const lines = [`Host: ${hostOf(hub.url)}`, `X-Forwarded-Host: ${hostOf(alice())}`];
    expect((await getRaw(hub.url, '/user/alice/', lines)).status).toBe(421);
  });

  test('of a trusted proxy is the one in Host, and no other is forwarded beside it', async () => {
    const { port } = new URL(hub.url);
    const [here, there] = [hostOf(alice()), hostOf(hub.url)];
    for (const [host, forwarded, expected] of [
      [here, here, '/hub/api/oauth2/authorize'],
      [there, here, 'names two hosts'],
      [here, there, 'names two hosts'],
      [here, `evil, ${here}`, 'names two hosts'],
    ]) {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.9' });
      const lines = [`Host: ${host}`, `X-Forwarded-Host: ${forwarded}`, 'Connection: close'];
      socket.write(['GET /user/alice/ HTTP/1.1', ...lines, '', ''].join('\r\n'));
      expect(await text(socket)).toContain(expected);
    }
  });

  test('does not matter to probes and to programs without a cookie', async () => {
    const other = 'Host: 10.0.0.1:8000';
    expect((await getRaw(hub.url, '/hub/health', [other])).status).toBe(200);
    const token = `Authorization: token ${adminToken}`;
    expect((await getRaw(hub.url, '/hub/api/users', [other, token])).status).toBe(200);
    expect((await getRaw(hub.url, '/hub/api/users', [other, token, 'Cookie: a=b'])).status).toBe(
      421,
    );
    expect((await getRaw(hub.url, '/hub/home', [other, token])).status).toBe(421);
  });
});

test('no two names look alike to the certificate', () => {
  expect(serviceHostLabel('wiki')).toBe('wiki--service');
  expect(userHostLabel('wiki--service')).not.toBe(serviceHostLabel('wiki'));
});

test.skipIf(!requires('openssl'))(
  'on https, a server behind hub-singleuser keeps its cookies from its neighbours',
  async () => {
    await using secure = await createTlsSubdomainHub({
      Spawner: { access: 'server', cmd: guarded(...fixtureApp('plain-web-app')) },
    });
    await createUsers(secure, 'alice');
    await startUntilReady(secure, serverPath('alice'));
    const browser = await secure.logIn('alice');
    const origin = originBelow(secure, 'alice');
    const page = await browser.open(`${origin}/user/alice/x`);
    expect(page).toMatchObject({ status: 200, url: `${origin}/user/alice/x` });
    const names = browser
      .cookieHeader(`${origin}/user/alice/`)
      .split('; ')
      .map((pair) => pair.split('=')[0]);
    expect(names).toContain('__Host-hub-user-alice');
    expect(names).toContain('__Host-hub-handed-off');
    const seen =
      (JSON.parse(page.body) as { headers: Record<string, string> }).headers['cookie'] ?? '';
    expect(seen).not.toMatch(/hub-handed-off|__Host-hub-user-alice/);
    // Of a neighbour, with the value of a login there that is real.
    const [login = ''] =
      /__Host-hub-user-alice=[^;]*/.exec(browser.cookieHeader(`${origin}/`)) ?? [];
    const planted = new FakeBrowser();
    planted.setCookie('hub-user-alice', login.split('=')[1] ?? '');
    const answer = await planted.request(`${origin}/user/alice/x`, {
      headers: { 'sec-fetch-mode': 'cors' },
    });
    expect(answer.status).toBe(401);
  },
);

test('the origins may be below another domain than that of the hub', async () => {
  const port = await freePort();
  const below = (label: string) => `http://${label}.apps.localhost:${port}`;
  await using apart = await createTestHub({
    Hub: {
      cleanup_servers: true,
      bind_url: `http://127.0.0.1:${port}/`,
      public_url: `http://hub.localhost:${port}/`,
      subdomain_host: `http://apps.localhost:${port}`,
      load_roles: usersOpenServices,
      services: [{ name: 'wiki', url: wiki.url, access: 'gateway' }],
    },
    Spawner: { access: 'server', cmd: guarded(...fixtureApp('plain-web-app')) },
  });
  await createUsers(apart, 'alice', 'bob');
  await startUntilReady(apart, serverPath('alice'));
  const browser = await apart.logIn('alice');
  const service = await browser.open(`${below('wiki--service')}/services/wiki/x`);
  expect(service).toMatchObject({
    body: 'wiki for alice',
    url: `${below('wiki--service')}/services/wiki/x`,
  });
  const server = await browser.open(`${apart.url}user/alice/x?y=1`);
  expect(server).toMatchObject({ status: 200, url: `${below('alice')}/user/alice/x?y=1` });
  expect(browser.cookieHeader(`${below('alice')}/user/alice/`)).not.toMatch(/hub-hub-login/);
  const foreignProcess = await apart.logIn('bob');
  expect((await foreignProcess.open(`${below('alice')}/user/alice/`)).status).toBe(403);
  // Neither domain serves what belongs to the other.
  for (const [host, path] of [
    ['alice.hub.localhost', '/user/alice/'],
    ['apps.localhost', '/hub/login'],
    ['alice.apps.localhost', '/hub/api/user'],
  ]) {
    const answer = await getRaw(apart.url, path ?? '', [`Host: ${host}:${port}`]);
    expect([400, 421], `${host}${path}`).toContain(answer.status);
  }
});
