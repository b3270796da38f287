import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { requireComponent } from '../support/components.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createForwardAuthWorld } from '../support/forward-auth-world.ts';
import { until } from '../support/test-hub.ts';
import { hasWebServer } from '../support/web-servers.ts';

const admin = 'admin-service-token';
const canRun = hasWebServer('nginx') && requireComponent('Caddy', '/usr/bin/caddy');

describe.runIf(canRun)('an app behind another proxy that asks the hub', () => {
  let world: Awaited<ReturnType<typeof createForwardAuthWorld>>;
  beforeAll(async () => {
    world = await createForwardAuthWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function tokenOf(userName: string): Promise<string> {
    const { hub } = world;
    await hub.api(`/users/${userName}`, admin, { method: 'POST' });
    const path = `/users/${userName}/tokens`;
    const answer = await hub.api(path, admin, { method: 'POST', body: '{}' });
    return ((await answer.json()) as { token: string }).token;
  }

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
      const authorization = `token ${await tokenOf('alice')}`;
      const open = await send(world.urlOf(proxy), '/page', { authorization });
      expect(open).toMatchObject({ status: 200, body: 'app /page' });
      const closed = await send(world.urlOf(proxy), '/admin/x', { authorization });
      expect(closed.status).toBe(403);
      const ops = { authorization: `token ${await tokenOf('olga')}` };
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
      for (const { url, headers: told } of world.seen) {
        expect(url).toBe('/public/x');
        for (const [name, value] of Object.entries(told)) {
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
      const authorization = `token ${await tokenOf('alice')}`;
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

  describe('asked without a proxy of the operator', () => {
    const asking = (headers: Record<string, string>) => ({
      'x-forwarded-method': 'GET',
      'x-forwarded-uri': '/public/x',
      'x-forwarded-host': `nginx.localhost:${world.port}`,
      ...headers,
    });

    test.each(['hub/forward-auth', 'hub/auth-request'])('%s', async (path) => {
      const status = async (headers: Record<string, string>) =>
        (await send(world.direct, `/${path}`, headers)).status;
      expect(await status(asking({}))).toBe(200);
      const refused = path === 'hub/auth-request' ? 403 : 400;
      expect(await status(asking({ 'x-forwarded-host': 'evil.example' }))).toBe(403);
      expect(await status(asking({ 'x-forwarded-host': 'hub.localhost' }))).toBe(403);
      expect(await status(asking({ 'x-forwarded-host': 'NGINX.localhost.' }))).toBe(200);
      expect(await status({ 'x-forwarded-host': 'nginx.localhost' })).toBe(refused);
      expect(await status(asking({ 'x-original-url': 'http://nginx.localhost/admin/x' }))).toBe(
        refused,
      );
      expect(await status(asking({ 'x-original-method': 'DELETE' }))).toBe(refused);
      expect(await status(asking({ 'x-forwarded-uri': 'http://evil.example/public/x' }))).toBe(
        refused,
      );
      expect(await status(asking({ 'x-forwarded-uri': '/public/x, /admin/x' }))).toBe(refused);
      expect(await status(asking({ 'x-forwarded-method': 'get' }))).toBe(refused);
      expect(await status(asking({ 'x-hub-groups': 'ops' }))).toBe(refused);
      const original = {
        'x-original-url': 'http://nginx.localhost/public/x',
        'x-original-method': 'GET',
      };
      expect(await status(original)).toBe(200);
    });

    test('a link with a token is no permission', async () => {
      const token = await tokenOf('olga');
      const page = {
        accept: 'text/html',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
      };
      for (const path of ['/hub/forward-auth', '/hub/auth-request']) {
        const uri = `/page?token=${token}`;
        const first = await send(world.direct, path, asking({ ...page, 'x-forwarded-uri': uri }));
        expect(first.status).not.toBe(200);
        const cookie = [first.headers['set-cookie'] ?? []]
          .flat()
          .map((line) => String(line).split(';')[0]);
        const next = String(first.headers['location'] ?? '/');
        const headers = asking({ ...page, cookie: cookie.join('; '), 'x-forwarded-uri': next });
        expect((await send(world.direct, path, headers)).status).not.toBe(200);
      }
    });
  });
});
