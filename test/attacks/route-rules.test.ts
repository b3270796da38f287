import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { sendRaw } from '../support/raw-request.ts';
import { untilState, usersOpenServices } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';
import { startUpstream } from './proxy-harness.ts';

/** What reached the app, and as whom. */
interface Seen {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

type Upgrade = Pick<IncomingMessage, 'headers'>;

const admin = 'admin-service-token';
const cleanUp = new AsyncDisposableStack();
const seen: Seen[] = [];
let hub: TestHub;
let config: Record<string, Record<string, unknown>>;
/** Where the hub itself answers, and where a gateway process does. */
let bases: Record<'hub' | 'gateway', string>;
let port: string;

const rules = [
  { paths: ['/public/*', '/health'], methods: ['GET'], allow: 'everyone' },
  { paths: ['/admin/*'], groups: ['ops'] },
  { paths: ['/closed/*'], allow: 'nobody' },
  { paths: ['/office/*'], client_addresses: ['192.0.2.0/24'], allow: 'everyone' },
];

const headers = {
  request: { set: { 'X-Api-Key': 'of the route' }, remove: ['Accept-Language'] },
  response: { set: { 'X-Frame-Options': 'DENY' }, remove: ['X-Powered-By'] },
};

beforeAll(async () => {
  const app = cleanUp.use(
    await startUpstream(
      (req, res) => {
        const { url = '', headers } = req;
        if (headers['user-agent'] !== 'hub-readiness-probe') {
          seen.push({ url, headers: headers as Record<string, string> });
        }
        res.setHeader('set-cookie', 'mine=1; Path=/');
        res.setHeader('x-powered-by', 'app');
        res.setHeader('x-frame-options', 'ALLOWALL');
        if (url.startsWith('/moved')) res.writeHead(302, { location: '/public/' });
        res.end(`app ${url}`);
      },
      (server) => {
        const sockets = new WebSocketServer({ server });
        sockets.on('connection', (socket, { url = '' }) => socket.send(url));
      },
    ),
  );
  const gatewayPort = await freePort();
  const target = app.url;
  config = {
    Hub: {
      public_url: `http://127.0.0.1:${gatewayPort}/`,
      load_roles: usersOpenServices,
      load_groups: [{ name: 'ops', users: ['olga'] }],
    },
    Proxy: {
      extra_routes: {
        '/wiki/': { target, access: 'gateway', strip_prefix: true, rules, headers },
        'asked.localhost/': { access: 'forward-auth', rules },
        'wiki.localhost/': { target, access: 'gateway', name: 'wiki-host' },
        '/elsewhere/': { target, limits: { allow_addresses: ['192.0.2.0/24'] } },
        '/denied/': {
          target,
          access: 'gateway',
          limits: { allow_addresses: ['0.0.0.0/0'], deny_addresses: ['127.0.0.0/8'] },
        },
        '/once/': {
          target,
          access: 'gateway',
          limits: { requests_per_second: 0.001, max_body_size: 10 },
        },
      },
    },
  };
  hub = cleanUp.use(await createTestHub(config));
  await untilState(hub, 'wiki', 'ready');
  for (const name of ['wiki-host', 'denied', 'once']) await untilState(hub, name, 'ready');
  const own = (hub.hub.publicServer.address() as { port: number }).port;
  const gateway = await startGateway(hub);
  cleanUp.defer(async () => {
    gateway.signal('SIGTERM');
    await gateway.exited;
  });
  bases = { hub: `http://127.0.0.1:${own}/`, gateway: hub.url };
  port = String(gatewayPort);
});

afterAll(() => cleanUp.disposeAsync());

async function tokenOf(userName: string): Promise<string> {
  await hub.api(`/users/${userName}`, admin, { method: 'POST' });
  const answer = await hub.api(`/users/${userName}/tokens`, admin, { method: 'POST', body: '{}' });
  return ((await answer.json()) as { token: string }).token;
}

async function visitor(userName: string): Promise<FakeBrowser> {
  const browser = await hub.logIn(userName);
  await browser.open(`${hub.url}wiki/`);
  return browser;
}

describe.each(['hub', 'gateway'] as const)('a guarded route at the %s', (place) => {
  const at = (path: string) => bases[place] + path;

  test('sends a browser to the login and back, and the app sees its own paths and who is there', async () => {
    const browser = await hub.logIn('alice');
    seen.length = 0;
    const page = await browser.open(at('wiki/page?x=1'));
    expect(page.body).toBe('app /page?x=1');
    expect(seen.at(-1)?.headers).toMatchObject({
      'x-hub-user': 'alice',
      'x-forwarded-prefix': '/wiki',
    });
    expect(seen.at(-1)?.headers['cookie'] ?? '').not.toContain('service-wiki');
    const moved = await browser.request(at('wiki/moved'));
    expect(moved.headers.location).toBe('/wiki/public/');
    expect(String(moved.headers['set-cookie'])).toContain('Path=/wiki/');
  });

  test('who has no access is refused', async () => {
    const anonymous = await fetch(at('wiki/page'), { headers: { 'x-requested-with': 'x' } });
    expect(anonymous.status).toBe(401);
    const forged = await fetch(at('wiki/page'), {
      headers: { 'x-requested-with': 'x', 'x-hub-user': 'admin', 'x-forwarded-user': 'admin' },
    });
    expect(forged.status).toBe(401);
  });

  test('a public part is for everyone, and for its methods only', async () => {
    seen.length = 0;
    const open = await fetch(at('wiki/public/x'), { headers: { 'x-hub-user': 'root' } });
    expect(await open.text()).toBe('app /public/x');
    expect(seen.at(-1)?.headers).not.toHaveProperty('x-hub-user');
    const written = await fetch(at('wiki/public/x'), { method: 'POST' });
    expect(written.status).toBe(401);
  });

  test('a public part never sees a token of the hub', async () => {
    const token = await tokenOf('alice');
    seen.length = 0;
    await fetch(at(`wiki/public/x?token=${token}&y=1`), {
      headers: { authorization: `token ${token}` },
    });
    expect(seen).toHaveLength(1);
    expect(JSON.stringify(seen)).not.toContain(token);
    expect(seen[0]?.url).toBe('/public/x?y=1');
  });

  test('a part for a group is closed to others', async () => {
    for (const [name, status] of [
      ['alice', 403],
      ['olga', 200],
    ] as const) {
      const browser = await visitor(name);
      // Asked for twice: the second time the visitor is known.
      for (const _ of [1, 2])
        expect((await browser.request(at('wiki/admin/x'))).status).toBe(status);
      expect((await browser.request(at('wiki/closed/x'))).status).toBe(403);
    }
  });

  test.each([
    'wiki/ADMIN/x',
    'wiki/public/..%2fadmin/x',
    'wiki/public/%2e%2e/admin/x',
    'wiki/public/%252e%252e/admin/x',
    'wiki/public;/../admin/x',
    'wiki//admin/x',
    'wiki/admin%2fx',
    'wiki/admin;a/x',
    'wiki/./admin/x',
    'wiki/public\\..\\admin/x',
    'wiki/%61dmin/x',
    'WIKI/admin/x',
  ])('no way around a rule: %s', async (path) => {
    const browser = await visitor('alice');
    const token = browser.cookieHeader(at('wiki/admin/x'));
    seen.length = 0;
    const answer = await sendRaw(
      bases[place],
      `GET /${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${token}\r\nConnection: close\r\n\r\n`,
    );
    expect([400, 403, 404]).toContain(answer.status);
    expect(seen).toEqual([]);
  });

  test('another method in a header, in small letters or in a parameter changes nothing', async () => {
    const browser = await visitor('alice');
    const cookie = browser.cookieHeader(at('wiki/admin/x'));
    seen.length = 0;
    for (const [method, path, header] of [
      ['GET', '/wiki/closed/x', 'X-HTTP-Method-Override: POST'],
      ['get', '/wiki/public/x', 'X-A: b'],
      ['GET', '/wiki/closed/x?path=/public/x', 'X-Original-URL: /wiki/public/x'],
      ['GET', '/wiki/closed/x', 'X-Rewrite-URL: /wiki/public/x'],
    ]) {
      const answer = await sendRaw(
        bases[place],
        `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${header}\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`,
      );
      expect([400, 403]).toContain(answer.status);
    }
    expect(seen).toEqual([]);
  });

  test('an address that only the client claims opens nothing', async () => {
    const forged = {
      'x-forwarded-for': '192.0.2.7',
      'x-real-ip': '192.0.2.7',
      'x-requested-with': 'x',
    };
    expect((await fetch(at('wiki/office/x'), { headers: forged })).status).toBe(401);
  });

  test('headers of a route are its own, whatever a visitor sends, for WebSockets too', async () => {
    const sent = {
      authorization: `token ${await tokenOf('alice')}`,
      'x-api-key': 'forged',
      'x-hub-user': 'forged',
      'accept-language': 'de',
    };
    seen.length = 0;
    const answer = await fetch(at('wiki/page'), { headers: sent });
    expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'of the route', 'x-hub-user': 'alice' });
    expect(seen[0]?.headers).not.toHaveProperty('accept-language');
    expect(answer.headers.get('x-frame-options')).toBe('DENY');
    expect(answer.headers.has('x-powered-by')).toBe(false);
    const socket = new WebSocket(at('wiki/').replace('http', 'ws'), { headers: sent });
    const [{ headers }] = (await once(socket, 'upgrade')) as [Upgrade];
    expect(headers['x-frame-options']).toBe('DENY');
    socket.terminate();
  });

  test('no header gets an address past the lists of a route, nor does a WebSocket', async () => {
    seen.length = 0;
    const forged = {
      authorization: `token ${await tokenOf('alice')}`,
      'x-forwarded-for': '192.0.2.7',
      'x-real-ip': '192.0.2.7',
      forwarded: 'for=192.0.2.7',
      'x-hub-hop': '192.0.2.7',
    };
    for (const path of ['elsewhere/x', 'denied/x', 'denied/oauth_callback']) {
      const answer = await fetch(at(path), { headers: forged });
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({ code: 'forbidden' });
    }
    const socket = new WebSocket(at('elsewhere/').replace('http', 'ws'), { headers: forged });
    const [error] = (await once(socket, 'error')) as [Error];
    expect(error.message).toMatch(/ 403$/);
    expect(seen).toEqual([]);
  });

  test('each user has the requests of a second, WebSockets among them', async () => {
    const [alice, olga] = [await tokenOf('alice'), await tokenOf('olga')];
    const ask = (token: string, init: RequestInit = {}) =>
      fetch(at('once/x'), { ...init, headers: { authorization: `token ${token}` } });
    const large = await ask(olga, { method: 'POST', body: 'x'.repeat(11) });
    expect(large.status).toBe(413);
    expect((await ask(olga)).status).toBe(429);
    // Who is not let in costs nobody anything.
    expect((await ask('none')).status).toBe(401);
    expect((await ask(alice)).status).toBe(200);
    const refused = await ask(alice);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1);
    const headers = { authorization: `token ${alice}` };
    const socket = new WebSocket(at('once/').replace('http', 'ws'), { headers });
    const [error] = (await once(socket, 'error')) as [Error];
    expect(error.message).toMatch(/ 429$/);
  });

  test('who is no proxy of the operator is told nothing about a request', async () => {
    const asked = {
      'x-forwarded-method': 'GET',
      'x-forwarded-uri': '/public/x',
      'x-forwarded-host': 'asked.localhost',
      'x-forwarded-for': '127.0.0.1',
    };
    for (const path of ['hub/forward-auth', 'hub/auth-request']) {
      expect((await fetch(at(path), { headers: asked })).status).toBe(403);
    }
  });

  test('rules hold for WebSockets', async () => {
    const headers = { authorization: `token ${await tokenOf('alice')}` };
    const url = at('wiki/').replace('http', 'ws');
    const open = new WebSocket(`${url}public/socket`);
    expect(String((await once(open, 'message'))[0])).toBe('/public/socket');
    open.terminate();
    for (const path of ['admin/socket', 'closed/socket', 'Closed/socket', 'closed;/socket']) {
      const socket = new WebSocket(url + path, { headers });
      const [error] = (await once(socket, 'error')) as [Error];
      expect(error.message).toMatch(/ 40[03]$/);
    }
  });

  test('on a host name of its own it has that host to itself', async () => {
    const browser = await hub.logIn('alice');
    const host = `http://wiki.localhost:${place === 'hub' ? new URL(bases.hub).port : port}`;
    seen.length = 0;
    expect((await browser.open(`${host}/hub/login`)).body).toBe('app /hub/login');
    expect(seen.at(-1)?.headers['x-hub-user']).toBe('alice');
    expect(seen.at(-1)?.headers['cookie'] ?? '').not.toContain('hub');
    expect((await new FakeBrowser().request(`${host}/x`)).headers.location).toMatch(
      new RegExp(`^http://127\\.0\\.0\\.1:${port}/hub/api/oauth2/authorize`),
    );
  });
});

test('connections end when their group or a new rule closes the part', async () => {
  const token = await tokenOf('olga');
  const openSocket = async (path: string, base = bases.hub) => {
    const socket = new WebSocket(`${base.replace('http', 'ws')}${path}`, {
      headers: { authorization: `token ${token}` },
    });
    await once(socket, 'message');
    return socket;
  };
  const [inGroup, atGateway] = [
    await openSocket('wiki/admin/a'),
    await openSocket('wiki/admin/b', bases.gateway),
  ];
  const other = await openSocket('wiki/live');
  const closed = [inGroup, atGateway].map((socket) => once(socket, 'close'));
  await hub.api('/groups/ops/users', admin, {
    method: 'DELETE',
    body: JSON.stringify({ users: ['olga'] }),
  });
  await Promise.all(closed);
  expect(other.readyState).toBe(WebSocket.OPEN);

  const remote = await openSocket('wiki/live', bases.gateway);
  const ended = [other, remote].map((socket) => once(socket, 'close'));
  const routes = config['Proxy']?.['extra_routes'] as Record<string, object>;
  const forbidding = [{ paths: ['/live/*'], allow: 'nobody' }, ...rules];
  await hub.reload({
    ...config,
    Proxy: { extra_routes: { ...routes, '/wiki/': { ...routes['/wiki/'], rules: forbidding } } },
  });
  await Promise.all(ended);
  for (const base of Object.values(bases)) {
    await until(async () => {
      const answer = await fetch(`${base}wiki/live`, {
        headers: { authorization: `token ${token}` },
      });
      return answer.status === 403;
    }, 'the new rule is in force');
  }
});
