import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { createRandom } from '../attacks/request-mutator.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createForwardAuthWorld, type ForwardAuthWorld } from '../support/forward-auth-world.ts';
import { sendRaw } from '../support/raw-request.ts';
import { requires } from '../support/requires.ts';
import { until } from '../support/test-hub.ts';

const admin = 'admin-service-token';

describe.runIf(requires('nginx', 'caddy'))('an app behind another proxy that asks the hub', () => {
  let world: ForwardAuthWorld;
  beforeAll(async () => {
    world = await createForwardAuthWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** A request that shows what a browser does not: headers of any name, and a path as it is. */
  async function send(
    base: string,
    path: string,
    headers: Record<string, string> = {},
    method = 'GET',
  ): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
    const { hostname, port, host } = new URL(base);
    const address = hostname.endsWith('.localhost') ? '127.0.0.1' : hostname;
    const sent = request({ host: address, port, path, method, headers: { host, ...headers } });
    sent.end();
    const [answer] = await once(sent, 'response');
    return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
  }

  describe.each(['nginx', 'caddy'] as const)('%s', (proxy) => {
    test('leads a browser through the login and back, and tells the app who is there', async () => {
      const browser = await world.hub.logIn('alice');
      world.seen.length = 0;
      const page = await browser.open(`${world.urlOf(proxy)}page?x=1`);
      expect(page).toMatchObject({ status: 200, body: 'app /page?x=1' });
      expect(world.seen.at(-1)?.headers).toMatchObject({ 'x-hub-user': 'alice' });
      expect(world.seen.at(-1)?.headers['x-hub-assertion']).toMatch(/^ey/);
      // The login is for this host alone.
      expect(browser.cookieHeader(world.urlOf(proxy))).not.toContain('hub-login');
      const other = proxy === 'nginx' ? 'caddy' : 'nginx';
      expect(browser.cookieHeader(world.urlOf(other))).not.toContain(`service-${proxy}`);
    });

    test('lets no one else in, and programs by their token', async () => {
      world.seen.length = 0;
      const anonymous = await send(world.urlOf(proxy), '/page', { 'x-requested-with': 'x' });
      expect(anonymous.status).toBe(401);
      expect(world.seen).toEqual([]);
      const authorization = `token ${await world.tokenOf('alice')}`;
      const open = await send(world.urlOf(proxy), '/page', { authorization });
      expect(open).toMatchObject({ status: 200, body: 'app /page' });
      const closed = await send(world.urlOf(proxy), '/admin/x', { authorization });
      expect(closed.status).toBe(403);
      const ops = { authorization: `token ${await world.tokenOf('olga')}` };
      expect((await send(world.urlOf(proxy), '/admin/x', ops)).status).toBe(200);
    });

    test('a public part is open, without an identity', async () => {
      world.seen.length = 0;
      expect((await send(world.urlOf(proxy), '/public/x')).body).toBe('app /public/x');
      expect(world.seen[0]?.headers['x-hub-user'] ?? '').toBe('');
      expect((await send(world.urlOf(proxy), '/public/x', {}, 'POST')).status).toBe(401);
    });

    test.each([
      ['an identity', { 'X-Hub-User': 'root' }, '/public/x'],
      ['an identity in other letters', { X_Hub_User: 'root' }, '/public/x'],
      ['another path', { 'X-Original-URL': 'http://a/public/x' }, '/admin/x'],
      ['another path, forwarded', { 'X-Forwarded-Uri': '/public/x' }, '/admin/x'],
      ['another method', { 'X-Forwarded-Method': 'GET', 'X-Original-Method': 'GET' }, '/admin/x'],
      ['another host', { 'X-Forwarded-Host': 'hub.localhost' }, '/admin/x'],
      [
        'a trusted address',
        { 'X-Forwarded-For': '127.0.0.1', 'X-Real-Ip': '127.0.0.1' },
        '/admin/x',
      ],
      ['a health check', { 'User-Agent': 'kube-probe/1.0' }, '/admin/x'],
    ])('a client cannot claim %s', async (_, headers, path) => {
      world.seen.length = 0;
      await send(world.urlOf(proxy), path, { 'x-requested-with': 'x', ...headers });
      for (const { url, headers: reported } of world.seen) {
        expect(url).toBe('/public/x');
        for (const [name, value] of Object.entries(reported)) {
          if (/^x[-_]hub/i.test(name)) expect(value).toBe('');
        }
      }
    });

    test.each([
      '/public/..%2fadmin/x',
      '/public/%2e%2e/admin/x',
      '/public%252f..%252fadmin/x',
      '/public;/x',
      '//public/x',
      '/PUBLIC/x',
      '/public%2fx',
      '/public\\x',
    ])('no way around a rule: %s', async (path) => {
      world.seen.length = 0;
      const { status } = await send(world.urlOf(proxy), path, { 'x-requested-with': 'x' });
      expect(status).toBeGreaterThanOrEqual(400);
      expect(world.seen).toEqual([]);
    });

    test('passes WebSockets on by the same rules', async () => {
      const url = `ws://127.0.0.1:${world.port}/socket`;
      const host = `${proxy}.localhost:${world.port}`;
      const authorization = `token ${await world.tokenOf('alice')}`;
      const socket = new WebSocket(url, { headers: { host, authorization } });
      expect(String((await once(socket, 'message'))[0])).toBe('alice');
      socket.terminate();
      const refused = new WebSocket(url, { headers: { host, 'sec-fetch-mode': 'websocket' } });
      const [error] = (await once(refused, 'error')) as [Error];
      expect(error.message).toMatch(/ 401$/);
    });

    test('a logout counts at the next request', async () => {
      const browser = await world.hub.logIn('alice');
      const url = `${world.urlOf(proxy)}page`;
      expect((await browser.open(url)).status).toBe(200);
      await world.hub.api('/users/alice/sessions', admin, { method: 'DELETE' });
      await until(async () => (await browser.request(url)).status === 302, 'the login is over');
    });

    test('a login leads back to the app alone', async () => {
      const browser = new FakeBrowser();
      for (const path of [
        '//evil.example/',
        '/\\evil.example',
        '/%2f/evil.example',
        '/.evil.example',
      ]) {
        const answer = await browser.request(world.urlOf(proxy) + path.slice(1), {});
        const location = String(answer.headers.location ?? '');
        if (location === '') continue;
        const to = new URL(location);
        expect(to.host).toBe(`hub.localhost:${world.port}`);
        expect(to.searchParams.get('redirect_uri')).toBe(`${world.urlOf(proxy)}oauth_callback`);
      }
    });
  });

  describe.each(['forwarded', 'original'] as const)('asked by %s headers', (kind) => {
    let asked: ForwardAuthWorld;
    beforeAll(async () => {
      asked = await createForwardAuthWorld({ headers: kind });
    });
    afterAll(() => asked[Symbol.asyncDispose]());

    function asking({ method = 'GET', host = `nginx.localhost:${asked.port}`, uri = '/public/x' }) {
      return kind === 'forwarded'
        ? { 'x-forwarded-method': method, 'x-forwarded-host': host, 'x-forwarded-uri': uri }
        : { 'x-original-method': method, 'x-original-url': `http://${host}${uri}` };
    }

    test.each(['hub/forward-auth', 'hub/auth-request'])('%s', async (path) => {
      const status = async (about: Parameters<typeof asking>[0]) =>
        (await send(asked.direct, `/${path}`, asking(about))).status;
      expect(await status({})).toBe(200);
      const refused = path === 'hub/auth-request' ? 403 : 400;
      expect(await status({ host: 'evil.example' })).toBe(403);
      expect(await status({ host: 'hub.localhost' })).toBe(403);
      expect(await status({ host: 'NGINX.localhost.' })).toBe(200);
      expect(await status({ uri: 'http://evil.example/public/x' })).toBe(refused);
      expect(await status({ uri: '/public/x, /admin/x' })).toBe(refused);
      expect(await status({ method: 'get' })).toBe(refused);
      expect(await status({ method: 'GET, GET' })).toBe(refused);
    });

    test('whatever is asked, it allows what the hub itself would forward, and tells no more', async () => {
      const [alice, olga] = [await asked.tokenOf('alice'), await asked.tokenOf('olga')];
      const { below, chance, pick } = createRandom(20_261_123);
      const ends = ['', '?a=b', `?token=${alice}`, '?x=%ff', ';v=1', '/', '#a', '%00', '\\'];
      const plain = ['public', 'admin', 'closed', 'office', 'page'];
      const segments = ['public', 'admin', 'closed', 'office', 'page', 'PUBLIC', 'adm%69n'].concat(
        ['..', '%2e%2e', '.', '', '%2f', '%252fadmin', '%c0%af', 'ö', 'a b', 'x'.repeat(9_000)],
        ['public;x', 'public%5c', '%', '%zz', '*', ':', 'office%2Fx', 'oauth_callback', 'hub'],
      );
      const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'DELETE', 'PROPFIND', 'OPTIONS'].concat(
        ['get', 'TRACE', 'CONNECT', 'FOO', 'G T', '', 'X'.repeat(40), 'GET,POST'],
      );
      const credentials = ['', `token ${alice}`, `Bearer ${olga}`, `token ${olga}x`, 'Basic Og=='];
      const others = [
        'Accept: text/html',
        'Sec-Fetch-Mode: navigate',
        'Sec-Fetch-Site: cross-site',
        'Cookie: service-direct-app=forged; service-asked-app=forged; hub-hub-login=x',
        `Cookie: ${'a=b; '.repeat(200)}`,
        'Origin: http://evil.example',
        'User-Agent: kube-probe/1.0',
        `X-Long: ${'y'.repeat(30_000)}`,
        'X-Api-Key: x',
      ];
      /** Of which a request of a client's own has none, or loses them. */
      const claims = [
        'X-Hub-User: olga',
        'X_Hub_Groups: ops',
        'X-Forwarded-Uri: /public/x',
        'X-Original-Method: GET',
        'X-Original-URL: http://asked.localhost/public/x',
        'X-Rewrite-Url: /public/x',
        'X-HTTP-Method-Override: GET',
      ];
      const tally = { allowed: 0, refused: 0 };
      for (let round = 0; round < 400; round += 1) {
        const parts = Array.from({ length: 1 + below(3) }, () =>
          pick(chance(0.7) ? plain : segments),
        );
        const path = `${chance(0.97) ? '/' : ''}${parts.join('/')}${chance(0.4) ? pick(ends) : ''}`;
        const method = chance(0.6) ? 'GET' : pick(methods);
        const host = chance(0.9) ? 'localhost' : pick(['LOCALHOST', 'localhost.', 'localhost:1']);
        const authorization = chance(0.5) ? `token ${olga}` : pick(credentials);
        const common = [
          `X-Forwarded-For: ${pick(['192.0.2.7', '198.51.100.7', '127.0.0.1', 'x'])}`,
          'X-Requested-With: x',
          ...(authorization === '' ? [] : [`Authorization: ${authorization}`]),
          ...Array.from({ length: below(3) }, () => pick(others)),
        ];
        const claimed = chance(0.15) ? [pick(claims)] : [];
        const asking =
          kind === 'original'
            ? [`X-Original-Method: ${method}`, `X-Original-URL: http://asked.${host}${path}`]
            : [
                `X-Forwarded-Method: ${method}`,
                `X-Forwarded-Host: asked.${host}`,
                `X-Forwarded-Uri: ${path}`,
              ];
        const request = (line: string, lines: readonly string[]) =>
          sendRaw(
            asked.direct,
            Buffer.from(
              `${[line, ...lines, ...common, ...claimed, 'Connection: close'].join('\r\n')}\r\n\r\n`,
            ),
          );
        const way = pick(['forward-auth', 'auth-request']);
        const hub = `Host: ${new URL(asked.direct).host}`;
        const answer = await request(`GET /hub/${way} HTTP/1.1`, [hub, ...asking]);
        asked.seen.length = 0;
        const direct = await request(`${method} ${path} HTTP/1.1`, [`Host: direct.${host}`]);
        const [isAllowed, isForwarded] = [answer.status === 200, asked.seen.length > 0];
        const what = { way, method, path: path.slice(0, 200), host, common, claimed };
        expect({ ...what, status: answer.status < 500 && answer.status > 0 }).toEqual({
          ...what,
          status: true,
        });
        expect({ ...what, status: direct.status < 500 }).toEqual({ ...what, status: true });
        if (isAllowed) {
          const said = direct.text.slice(0, 600);
          expect({ ...what, said, isForwarded }).toEqual({ ...what, said, isForwarded: true });
        } else if (claimed.length === 0) {
          expect({ ...what, isForwarded, said: answer.text.slice(0, 600) }).toEqual({
            ...what,
            isForwarded: false,
            said: answer.text.slice(0, 600),
          });
        }
        tally[isAllowed ? 'allowed' : 'refused'] += 1;
        // Who is there is told of whom the request itself shows, and only where it is allowed.
        const users = [...answer.text.matchAll(/^x-hub-user: (\w+)/gim)].map(([, name]) => name);
        const own = authorization.includes(alice) || path.includes(alice) ? 'alice' : 'olga';
        expect(users.filter((name) => !isAllowed || name !== own)).toEqual([]);
        for (const secret of [alice, olga, '"ops"']) expect(answer.text).not.toContain(secret);
      }
      for (const count of Object.values(tally)) expect(count).toBeGreaterThan(40);
    });

    test('a link with a token is no permission', async () => {
      const token = await asked.tokenOf('olga');
      const page = {
        accept: 'text/html',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
      };
      for (const path of ['/hub/forward-auth', '/hub/auth-request']) {
        const uri = `/page?token=${token}`;
        const first = await send(asked.direct, path, { ...page, ...asking({ uri }) });
        expect(first.status).not.toBe(200);
        const cookie = [first.headers['set-cookie'] ?? []]
          .flat()
          .map((line) => String(line).split(';')[0]);
        const next = String(first.headers['location'] ?? '/');
        const headers = { ...page, cookie: cookie.join('; '), ...asking({ uri: next }) };
        expect((await send(asked.direct, path, headers)).status).not.toBe(200);
      }
    });
  });
});
