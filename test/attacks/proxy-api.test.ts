import { once } from 'node:events';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';
import { startUpstream } from './proxy-harness.ts';
import { createRandom } from './request-mutator.ts';

const token = 'token-of-the-jupyterhub';
const cleanUp = new AsyncDisposableStack();
let hub: TestHub;
let apiPort: number;
let app: Awaited<ReturnType<typeof startUpstream>>;
let gatewayUrl: string;

beforeAll(async () => {
  app = cleanUp.use(await startUpstream((req, res) => void res.end(`app ${req.url}`)));
  apiPort = await freePort();
  hub = cleanUp.use(
    await createTestHub({
      Hub: {
        public_url: `http://127.0.0.1:${await freePort()}/`,
        proxy_api: { bind_url: `http://127.0.0.1:${apiPort}`, auth_token: token },
      },
      Proxy: { extra_routes: { '/own/': app.url } },
    }),
  );
  const gateway = await startGateway(hub);
  gatewayUrl = gateway.url;
  cleanUp.defer(async () => {
    gateway.signal('SIGTERM');
    await gateway.exited;
  });
});
afterAll(() => cleanUp.disposeAsync());

function api(
  method: string,
  path: string,
  body?: unknown,
  authorization = `token ${token}`,
): Promise<Response> {
  return fetch(`http://127.0.0.1:${apiPort}/api/routes${path}`, {
    method,
    headers: { authorization },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
}

const routesNow = async (query = '') => (await (await api('GET', query)).json()) as object;

describe('the API of configurable-http-proxy', () => {
  test('adds, shows, replaces and removes routes, everywhere', async () => {
    const given = { target: app.url, jupyterhub: true, user: 'ada' };
    const added = await api('POST', '/jh/user/a%40b', given);
    expect([added.status, await added.text()]).toEqual([201, '']);
    expect(await routesNow()).toEqual({
      '/jh/user/a@b': { ...given, last_activity: expect.stringMatching(/Z$/) },
    });
    expect(await (await api('GET', '/jh/user/a@b/')).json()).toMatchObject(given);
    const bound = (hub.hub.publicServer.address() as { port: number }).port;
    for (const base of [`http://127.0.0.1:${bound}/`, gatewayUrl]) {
      await until(async () => {
        const answer = await fetch(`${base}jh/user/a%40b/x?y=1`);
        return (await answer.text()) === 'app /jh/user/a@b/x?y=1';
      }, 'the route is there');
    }
    expect((await api('POST', '/jh/user/a%40b', { ...given, user: 'bob' })).status).toBe(201);
    expect(await (await api('GET', '/jh/user/a%40b')).json()).toMatchObject({ user: 'bob' });
    expect((await api('DELETE', '/jh/user/a%40b/')).status).toBe(204);
    expect((await api('DELETE', '/jh/user/a%40b')).status).toBe(404);
    expect((await api('GET', '/jh/user/a%40b')).status).toBe(404);
    expect(await routesNow()).toEqual({});
  });

  test('changes only what a client has read, where it says so', async () => {
    const at = '/jh/versions';
    const change = async (method: string, etag: string, body?: object) =>
      fetch(`http://127.0.0.1:${apiPort}/api/routes${at}`, {
        method,
        headers: { authorization: `token ${token}`, 'if-match': etag },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    for (const etag of ['*', '"former"']) {
      expect((await change('POST', etag, { target: app.url })).status, etag).toBe(412);
      expect((await change('DELETE', etag)).status, etag).toBe(412);
    }
    const added = await api('POST', at, { target: app.url });
    const etag = (await api('GET', at)).headers.get('etag') ?? '';
    expect([added.headers.get('etag'), etag]).toEqual([etag, expect.stringMatching(/^"\S{22}"$/)]);
    const both = await Promise.all(
      ['ada', 'bob'].map((user) => change('POST', etag, { target: app.url, user })),
    );
    expect(both.map(({ status }) => status).toSorted()).toEqual([201, 412]);
    const late = await change('DELETE', etag);
    expect([late.status, ((await late.json()) as { message: string }).message]).toEqual([
      412,
      'This has been changed since it was read.',
    ]);
    const won = both.find(({ status }) => status === 201)?.headers.get('etag') ?? '';
    expect((await change('DELETE', won)).status).toBe(204);
    expect((await change('POST', won, { target: app.url })).status).toBe(412);
    expect(await routesNow()).toEqual({});
  });

  test('tells routes without traffic since a time', async () => {
    await api('POST', '/quiet', { target: app.url });
    const past = new Date(Date.now() - 3_600_000).toISOString();
    const future = new Date(Date.now() + 3_600_000).toISOString();
    expect(Object.keys(await routesNow(`?inactive_since=${future}`))).toEqual(['/quiet']);
    expect(Object.keys(await routesNow(`?inactiveSince=${past}`))).toEqual([]);
    expect((await api('GET', '?inactive_since=yesterday')).status).toBe(400);
    await api('DELETE', '/quiet');
  });

  test.each([
    ['none', ''],
    ['another', 'token something-else-entirely'],
    ['part of it', `token ${token.slice(0, -1)}`],
    ['more than it', `token ${token}x`],
    ['under another scheme', `xtoken ${token}`],
    ['that of an administrator', 'token admin-service-token'],
  ])('takes no token but its own: %s', async (_, authorization) => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const body = method === 'POST' ? { target: app.url } : undefined;
      expect((await api(method, '/x', body, authorization)).status).toBe(403);
    }
    expect(await routesNow()).toEqual({});
  });

  test('refuses before it reads a body, and reads no huge one', async () => {
    for (const [authorization, status] of [
      ['token wrong', 403],
      [`token ${token}`, 413],
    ] as const) {
      const sent = request({
        port: apiPort,
        method: 'POST',
        path: '/api/routes/x',
        headers: { authorization, 'content-length': 30_000_000 },
      });
      sent.on('error', () => {});
      sent.flushHeaders();
      const [answer] = await once(sent, 'response');
      expect(answer.statusCode).toBe(status);
      sent.destroy();
    }
  });

  test.each([
    '/',
    '/hub',
    '/hub/api',
    '/h%75b/login',
    '/hub%2fapi',
    '/user/ada',
    '/services/x',
    '/own',
    '/own/part',
    '/own/%61',
  ])('refuses to hide the hub or another route: %s', async (path) => {
    const answer = await api('POST', path, { target: app.url });
    expect(answer.status).toBe(409);
    expect(((await answer.json()) as { message: string }).message).toMatch(/would hide/);
  });

  test.each([
    '/a/../hub',
    '/a//b',
    '/a%00b',
    '/a%0d%0ab',
    '/a%5cb',
    '/%2e%2e/hub',
    '/a%25b',
    `/${'a'.repeat(3000)}`,
  ])('refuses what is no path of a route: %s', async (path) => {
    const sent = request({
      port: apiPort,
      method: 'POST',
      path: `/api/routes${path}`,
      headers: { authorization: `token ${token}` },
    });
    sent.end(JSON.stringify({ target: app.url }));
    const [answer] = await once(sent, 'response');
    answer.resume();
    expect(answer.statusCode).toBe(400);
  });

  test('refuses targets that are none, that lead into files, or in a circle', async () => {
    const own = new URL(hub.apiUrl).port;
    for (const target of [
      'nonsense',
      'file:///etc/passwd',
      'http+unix://%2Frun%2Fdocker.sock',
      'gopher://127.0.0.1:1/',
      'http://a:b@127.0.0.1:1/',
      'http://127.0.0.1:1/path',
      hub.url,
      `http://localhost:${own}`,
      `http://127.1:${own}`,
      `http://[::1]:${own}`,
      `http://0.0.0.0:${apiPort}`,
      `http://[::ffff:127.0.0.1]:${own}`,
      `http://localhost.:${own}`,
      'http://169.254.169.254/',
      'http://[::ffff:169.254.169.254]/',
      'http://[fe80::1]/',
      'http://[fd00:ec2::254]/',
      'http://[64:ff9b::169.254.169.254]/',
      7,
    ]) {
      expect([target, (await api('POST', '/x', { target })).status]).toEqual([target, 400]);
    }
    expect((await api('POST', '/x', '{')).status).toBe(400);
    expect((await api('POST', '/x', {})).status).toBe(400);
    expect((await api('PUT', '/x', {})).status).toBe(405);
  });

  test('whatever is sent, nothing fails, nothing hangs, and what the hub has stays', async () => {
    const random = createRandom(5);
    const parts = ['a', 'hub', 'own', '%2e%2e', '..', '', '%2f', '%', '%00', '%zz', '*', 'zoë'];
    const values = [
      ...[null, true, 0, -1, 1e308, '', [], {}, 'x'.repeat(70_000)],
      ...[app.url, `${app.url}/`, `${app.url}/path`, app.url.replace('//', '//user:password@')],
      ...['http://', 'http://[', 'http://a b', 'ftp://a', 'javascript:1', '//a', 'http://x:99999'],
      ...['http://169.254.169.254/', `${hub.url}`, hub.apiUrl, '\u{d800}', '__proto__'],
    ];
    const bodies = ['', '{', 'null', '[]', '"x"', '{"target":', '\0', '['.repeat(50_000)];
    const body = () =>
      random.chance(0.3)
        ? random.pick(bodies)
        : JSON.stringify(
            Object.fromEntries([
              ['target', random.pick(values)],
              [
                random.pick(['x', '__proto__', 'last_activity', 'inactive_since']),
                random.pick(values),
              ],
            ]),
          );
    const call = () => {
      const method = random.pick([
        'GET',
        'POST',
        'POST',
        'POST',
        'DELETE',
        'PUT',
        'PATCH',
        'OPTIONS',
      ]);
      const path = Array.from({ length: random.below(4) }, () => `/${random.pick(parts)}`).join('');
      const query = random.chance(0.3) ? `?inactive_since=${random.pick(parts)}` : '';
      return [method, path + query, method === 'GET' ? undefined : body()] as const;
    };
    for (let index = 0; index < 400; index++) {
      const sent = call();
      const answer = await api(...sent);
      await answer.text();
      expect([answer.status, sent]).toEqual([expect.toSatisfy((status) => status < 500), sent]);
    }
    expect((await fetch(`${hub.apiUrl}/`)).status).toBe(200);
    expect(await (await fetch(`${hub.url}own/x`)).text()).toBe('app /own/x');
    for (const path of Object.keys(await routesNow())) {
      const encoded = path.split('/').map(encodeURIComponent).join('/');
      expect((await api('DELETE', encoded)).status).toBe(204);
    }
    expect(await routesNow()).toEqual({});
  });

  test('leaves in the audit log who changed what, and from where', async () => {
    const target = app.url;
    await api('POST', '/seen', { target, user: 'ada' });
    await api('POST', '/seen', { target, user: 'ada' });
    await api('POST', '/seen', { target, user: 'bob' });
    await api('DELETE', '/seen');
    await api('DELETE', '/seen');
    await api('POST', '/hub', { target });
    const answer = await hub.api('/audit?target=/seen', 'admin-service-token');
    const { entries } = (await answer.json()) as { entries: Record<string, unknown>[] };
    const actor = { kind: 'proxy_api', name: null, address: '127.0.0.1' };
    const of = { kind: 'route', name: '/seen' };
    expect(entries).toMatchObject([
      { action: 'route.delete', actor, target: of, result: 'done', detail: {} },
      { action: 'route.save', actor, target: of, result: 'done', detail: { target } },
      { action: 'route.save', actor, target: of, result: 'done', detail: { target } },
    ]);
    await api('POST', '/seen', { target }, 'token not-the-token-at-all');
    await until(async () => {
      const found = await hub.api('/audit?action=access&result=refused', 'admin-service-token');
      const text = await found.text();
      return text.includes('"page":"proxy_api"') && !text.includes('not-the-token-at-all');
    }, 'the refusal is recorded');
  });

  test('is at no public address', async () => {
    const answer = await fetch(`${gatewayUrl}api/routes`, {
      headers: { authorization: `token ${token}` },
    });
    expect(answer.status).toBe(404);
  });

  test('keeps the routes over a restart of the hub', async () => {
    await api('POST', '/kept', { target: app.url, user: 'ada' });
    await api('POST', '/gone', { target: app.url });
    await api('DELETE', '/gone');
    const before = Object.keys(await routesNow());
    hub = cleanUp.use(await hub.restart());
    const after = await routesNow();
    expect(Object.keys(after)).toEqual(before);
    expect(after).toMatchObject({ '/kept': { target: app.url, user: 'ada' } });
    await until(async () => {
      const answer = await fetch(`${gatewayUrl}kept/x`).catch(() => undefined);
      return (await answer?.text()) === 'app /kept/x';
    }, 'the route is there again');
    expect((await api('DELETE', '/kept')).status).toBe(204);
  });
});
