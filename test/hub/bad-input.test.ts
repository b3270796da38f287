import { request } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { getRaw, sendRaw } from '../support/raw-request.ts';
import {
  managedService,
  openWithConsent,
  untilState,
  usersOpenServices,
} from '../support/services.ts';
import { createTestHub, submitForm, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
let guarded: string;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      load_roles: usersOpenServices,
      services: [
        await managedService('guarded', 'fixtures/apps/gateway-app.cjs', {
          access: 'gateway',
          oauth_no_confirm: false,
        }),
        { name: 'client', api_token: 'secret-of-the-client', oauth_no_confirm: true },
      ],
    },
  });
  guarded = `${hub.url}services/guarded/`;
  await untilState(hub, 'guarded', 'ready');
  await hub.logIn('alice');
});

afterAll(async () => hub[Symbol.asyncDispose]());

// Whatever was sent: the hub goes on, and nothing of it was unforeseen.
afterEach(async () => {
  const health = await fetch(`${hub.url}hub/health`);
  expect(health.status).toBe(200);
  const unforeseen = hub.logLines.filter(({ level }) => Number(level) >= 50);
  expect(unforeseen).toEqual([]);
});

const oddValues = [
  '',
  'a',
  '%',
  '%00',
  '%zz',
  'a'.repeat(4_000),
  '"; DROP TABLE users; --',
  '../../etc/passwd',
  '{"$gt":""}',
  '=====',
  'AQ==',
  '😀',
  '__proto__',
];

describe('malformed cookies', () => {
  const names = [
    'hub-hub-login',
    'hub-session-id',
    'hub-form',
    'service-guarded',
    'service-guarded-oauth-state-0123456789abcdef',
    'service-guarded-oauth-state-round',
  ];
  test.each(names)('of the name %s are as if there were none', async (name) => {
    for (const value of oddValues) {
      const sent = Buffer.from(value)
        .toString('latin1')
        .replaceAll(/[;\r\n]/g, '');
      for (const target of ['/hub/home', '/services/guarded/']) {
        const answer = await getRaw(hub.url, target, [
          `Cookie: ${name}=${sent}`,
          'Accept: text/html',
          'Sec-Fetch-Mode: navigate',
        ]);
        expect(answer.status, `${name}=${value} at ${target}`).toBe(302);
      }
      const login = await getRaw(hub.url, '/hub/login', [`Cookie: ${name}=${sent}`]);
      expect(login.status).toBe(200);
    }
  });

  test('in a header that is no list of cookies are as if there were none', async () => {
    for (const header of ['', ';;;;', '=;=;=', 'a', '==', 'a=b;'.repeat(500)]) {
      const answer = await getRaw(hub.url, '/hub/home', [`Cookie: ${header}`, 'Accept: text/html']);
      expect(answer.status, header.slice(0, 40)).toBe(302);
    }
  });

  test('of which one byte was changed are as if there were none', async () => {
    const browser = await hub.logIn('alice');
    const { value } = browser.cookie('hub-hub-login')!;
    for (const at of [0, 5, 20, Math.floor(value.length / 2), value.length - 2]) {
      const changed = value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1);
      const answer = await new FakeBrowser().request(`${hub.url}hub/home`, {
        headers: { cookie: `hub-hub-login=${changed}` },
      });
      expect(answer.status).toBe(302);
    }
  });
});

describe('malformed tokens', () => {
  test('identify no user, in the header and in the address', async () => {
    for (const value of oddValues) {
      const sent = Buffer.from(value).toString('latin1');
      const header = await getRaw(hub.url, '/hub/api/user', [`Authorization: token ${sent}`]);
      expect(header.status, value.slice(0, 40)).toBe(403);
      const inUrl = await fetch(`${hub.apiUrl}/user?token=${encodeURIComponent(value)}`);
      expect(inUrl.status, value.slice(0, 40)).toBe(403);
    }
  });

  test('of other schemes, or twice, identify no user', async () => {
    for (const header of [
      'Basic YTpi',
      'token',
      'Digest x',
      'tokenadmin-service-token',
      'token a b',
    ]) {
      const answer = await getRaw(hub.url, '/hub/api/user', [`Authorization: ${header}`]);
      expect(answer.status, header).toBe(403);
    }
    const twice = await fetch(`${hub.apiUrl}/user?token=admin-service-token&token=other`);
    expect(twice.status).toBe(400);
  });
});

describe('malformed codes and states', () => {
  test.each(oddValues.map((value) => [value.slice(0, 30), value]))(
    'code %s is invalid_grant or invalid_request',
    async (_shown, code) => {
      const answer = await fetch(`${hub.apiUrl}/oauth2/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          client_id: 'service-client',
          client_secret: 'secret-of-the-client',
          redirect_uri: '/services/client/oauth_callback',
          code,
        }),
      });
      expect(answer.status).toBe(400);
      const { error } = (await answer.json()) as { error: string };
      expect(['invalid_grant', 'invalid_request']).toContain(error);
    },
  );

  test('at the callback of a guarded service are 403', async () => {
    const browser = await hub.logIn('alice');
    await browser.request(guarded);
    for (const value of oddValues) {
      const query = new URLSearchParams({ code: value, state: value });
      const answer = await browser.request(`${guarded}oauth_callback?${query}`);
      expect(answer.status, value.slice(0, 40)).toBe(403);
    }
  });

  test('state of any text comes back as it was sent', async () => {
    const browser = await hub.logIn('alice');
    for (const state of oddValues.filter((value) => value !== '')) {
      const query = new URLSearchParams({
        client_id: 'service-client',
        redirect_uri: '/services/client/oauth_callback',
        response_type: 'code',
        state,
      });
      const answer = await browser.request(`${hub.url}hub/api/oauth2/authorize?${query}`);
      const location = new URL(answer.headers.location ?? '', hub.url);
      expect(location.searchParams.get('state')).toBe(state);
    }
  });
});

describe('duplicate parameters', () => {
  test.each(['client_id', 'redirect_uri'])(
    '%s twice in an authorization request is an error page, no redirect',
    async (name) => {
      const browser = await hub.logIn('alice');
      const query = `client_id=service-client&redirect_uri=/services/client/oauth_callback&response_type=code&${name}=x`;
      const answer = await browser.request(`${hub.url}hub/api/oauth2/authorize?${query}`);
      expect(answer.status).toBe(400);
      expect(answer.headers.location).toBeUndefined();
    },
  );

  test.each(['state', 'scope', 'response_type'])(
    '%s twice goes back to the client as invalid_request',
    async (name) => {
      const browser = await hub.logIn('alice');
      const query = `client_id=service-client&redirect_uri=/services/client/oauth_callback&response_type=code&state=a&scope=&${name}=x`;
      const answer = await browser.request(`${hub.url}hub/api/oauth2/authorize?${query}`);
      expect(answer.status).toBe(302);
      const location = new URL(answer.headers.location ?? '', hub.url);
      expect(location.searchParams.get('error')).toBe('invalid_request');
    },
  );

  test('a form with a field twice is no server error', async () => {
    const browser = new FakeBrowser();
    const page = await browser.request(`${hub.url}hub/login`);
    const csrf = /name="_csrf" value="([^"]*)"/.exec(page.body)?.[1] ?? '';
    const answer = await browser.request(`${hub.url}hub/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `_csrf=${csrf}&username=a&username=b&password=x&password=test`,
    });
    expect(answer.status).toBeGreaterThanOrEqual(302);
    expect(answer.status).toBeLessThan(500);
  });
});

describe('paths', () => {
  test.each([
    '/services/guarded/../../hub/home',
    '/services/guarded/%2e%2e/x',
    '/services//guarded/',
    '/services%2fguarded/',
    '/services\\guarded/',
    '/services/guarded/%5c..%5cx',
  ])('%s is 400: it can be read in more than one way', async (target) => {
    expect((await getRaw(hub.url, target)).status).toBe(400);
  });

  test.each([
    '/%',
    '/%zz',
    '/%00',
    '/hub/%ff',
    '/hub/login%0d%0aSet-Cookie:x',
    '/user/%F0%9F%98%80/',
    '/user/__proto__/',
    '/services/constructor/',
    `/${'a'.repeat(8_000)}`,
    '*',
    'http://evil.example/hub/login',
  ])('%s is a client error or a redirect, never a server error', async (target) => {
    const answer = await getRaw(hub.url, target);
    expect(answer.status).toBeGreaterThanOrEqual(200);
    expect(answer.status).toBeLessThan(500);
    expect(answer.text).not.toMatch(/^Set-Cookie:x/im);
  });

  test.each(['BREW', 'TRACE', 'PROPFIND', 'CONNECT'])(
    'the method %s is refused',
    async (method) => {
      const target = method === 'CONNECT' ? 'evil.example:80' : '/hub/login';
      const answer = await sendRaw(
        hub.url,
        `${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      );
      expect([0, 400, 404, 405, 501]).toContain(answer.status);
    },
  );
});

describe('Host headers', () => {
  test.each([
    'evil.example',
    'evil.example:99999',
    '"><script>',
    '[::1',
    'a b',
    '',
    '127.0.0.1@evil.example',
  ])('%s decides no redirect and no link', async (host) => {
    for (const target of [
      '/',
      '/hub/login',
      '/hub/home',
      '/services/guarded/',
      '/hub/logout',
      '/.well-known/oauth-authorization-server',
    ]) {
      const answer = await getRaw(hub.url, target, [
        `Host: ${host}`,
        'Accept: text/html',
        'X-Forwarded-Host: evil.example',
        'Forwarded: host=evil.example',
      ]);
      expect(answer.status).toBeLessThan(500);
      expect(answer.text).not.toContain('evil.example');
      expect(answer.text).not.toContain('"><script>');
    }
  });

  test('twice or not at all is 400', async () => {
    const twice = 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n';
    expect((await sendRaw(hub.url, twice)).status).toBe(400);
    const none = 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n';
    expect((await sendRaw(hub.url, none)).status).toBe(400);
  });
});

describe('what is too large', () => {
  test('headers are 431', async () => {
    const answer = await getRaw(hub.url, '/hub/login', [`X-Large: ${'a'.repeat(20_000)}`]);
    expect(answer.status).toBe(431);
    const many = Array.from({ length: 3_000 }, (_, number) => `X-${number}: a`);
    expect([400, 431]).toContain((await getRaw(hub.url, '/hub/login', many)).status);
  });

  test.each(['/hub/login', '/hub/api/users/alice/tokens'])(
    'a body at %s is 413, announced or not',
    async (path) => {
      const headers = {
        authorization: 'token admin-service-token',
        'content-type': path.includes('api/users')
          ? 'application/json'
          : 'application/x-www-form-urlencoded',
      };
      const body = 'a'.repeat(2 * 1024 * 1024);
      const browser = new FakeBrowser();
      await browser.request(`${hub.url}hub/login`);
      const announced = await statusOf(
        path,
        { ...headers, 'content-length': String(body.length) },
        body,
      );
      expect(announced).toBe(413);
      const chunked = await statusOf(path, { ...headers, 'transfer-encoding': 'chunked' }, body);
      expect(chunked).toBe(413);
    },
  );

  test('a body at the token endpoint is invalid_request, and is not read to its end', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const status = await statusOf('/hub/api/oauth2/token', headers, 'a'.repeat(2 * 1024 * 1024));
    expect(status).toBe(400);
  });

  function statusOf(path: string, headers: Record<string, string>, body: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const outgoing = request(new URL(path, hub.url), { method: 'POST', headers }, (response) => {
        resolve(response.statusCode ?? 0);
        response.destroy();
      });
      // The hub may close before everything is sent; the answer counts.
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }
});

describe('wrong content types', () => {
  test.each(['application/json', 'text/plain', 'multipart/form-data; boundary=x', 'nonsense'])(
    '%s at the login form is 415',
    async (contentType) => {
      const answer = await new FakeBrowser().request(`${hub.url}hub/login`, {
        method: 'POST',
        headers: { 'content-type': contentType },
        body: 'username=alice&password=test',
      });
      expect([403, 415]).toContain(answer.status);
    },
  );

  test('JSON with a token is read whatever type it is sent as', async () => {
    for (const contentType of ['application/x-www-form-urlencoded', 'text/plain', undefined]) {
      const answer = await fetch(`${hub.apiUrl}/users/alice/tokens`, {
        method: 'POST',
        headers: {
          authorization: 'token admin-service-token',
          ...(contentType && { 'content-type': contentType }),
        },
        // Of bytes, for which fetch names no type.
        body: Buffer.from('{"note": "from a script"}'),
      });
      expect([contentType, answer.status, await answer.json()]).toMatchObject([
        contentType,
        201,
        { note: 'from a script' },
      ]);
    }
  });

  test('JSON of a browser must say that it is JSON, which a form of another site cannot', async () => {
    const browser = await hub.logIn('alice');
    const page = await browser.request(`${hub.url}hub/account`);
    const csrf = /name="_csrf" value="([^"]*)"/.exec(page.body)?.[1] ?? '';
    const send = (contentType: string) =>
      browser.request(`${hub.url}hub/api/users/alice/tokens`, {
        method: 'POST',
        headers: { 'content-type': contentType, 'x-csrf-token': csrf },
        body: '{"note": "from a page"}',
      });
    expect((await send('text/plain')).status).toBe(415);
    expect((await send('application/x-www-form-urlencoded')).status).toBe(415);
    expect((await send('application/json')).status).toBe(201);
  });

  test('a form or broken JSON at the API is 400', async () => {
    const send = (contentType: string, body: string | Buffer) =>
      hub.api('/users/alice/tokens', 'admin-service-token', {
        method: 'POST',
        headers: { 'content-type': contentType },
        body: body as NonNullable<RequestInit['body']>,
      });
    expect((await send('application/x-www-form-urlencoded', 'note=a')).status).toBe(400);
    expect((await send('application/json', '{')).status).toBe(400);
    expect((await send('application/json', '[]')).status).toBe(400);
    expect((await send('application/json', '"text"')).status).toBe(400);
    expect((await send('application/json', Buffer.from([0x22, 0xff, 0xfe, 0x22]))).status).toBe(
      400,
    );
    expect((await send('application/json', '{"note":"a\\u0000b"}')).status).toBeLessThan(500);
    expect(
      (await send('application/json', `${'['.repeat(50_000)}${']'.repeat(50_000)}`)).status,
    ).toBe(400);
  });

  test('JSON at the token endpoint is refused with an OAuth error', async () => {
    const answer = await fetch(`${hub.apiUrl}/oauth2/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect([400, 401, 415]).toContain(answer.status);
    expect(await answer.json()).toHaveProperty('error');
  });
});

describe('the form of consent', () => {
  test('with neither Allow nor Deny is 400, without a CSRF token 403', async () => {
    const browser = await hub.logIn('nora');
    const consent = await browser.open(guarded);
    expect((await submitForm(browser, consent, { decision: 'perhaps' })).status).toBe(400);
    expect((await submitForm(browser, consent, { decision: 'allow', _csrf: 'x' })).status).toBe(
      403,
    );
    expect((await openWithConsent(browser, guarded)).status).toBe(200);
  });
});

describe('an incomplete request', () => {
  test.each([
    'GET',
    'GET / HTTP/1.1\r\n',
    'nonsense\r\n\r\n',
    '\r\n\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01',
  ])('%j is 400 or waits for the rest', async (bytes) => {
    const { host } = new URL(hub.url);
    const answer = await sendRaw(hub.url, `${bytes}\r\n\x00 ${host}\r\n\r\n`);
    expect([0, 400]).toContain(answer.status);
  });
});

describe('requests that announce no body', () => {
  test.each([
    ['POST', '/hub/login'],
    ['POST', '/hub/api/oauth2/token'],
    ['POST', '/hub/api/users/alice/tokens'],
    ['PATCH', '/hub/api/users/alice'],
    ['DELETE', '/hub/api/users/nobody'],
    ['POST', '/services/guarded/'],
  ])('are answered: %s %s', async (method, path) => {
    const answer = await sendRaw(
      hub.url,
      `${method} ${path} HTTP/1.1\r\nHost: hub.test\r\nAuthorization: token admin-service-token\r\n` +
        'Connection: close\r\n\r\n',
    );
    expect(answer.status).toBeGreaterThanOrEqual(200);
    expect(answer.status).toBeLessThan(500);
  });
});

test.each([
  'HUB/home',
  'hub/HOME',
  'hub/Login',
  'hub/ADMIN',
  'hub/METRICS',
  'HUB/api/health',
  'hub/API/health',
  'hub/api/HEALTH',
  'hub/api/OAuth2/authorize',
  'hub/Static/app.css',
  'USER/alice/',
  'Services/guarded/',
])('/%s is no other spelling of a path', async (path) => {
  const browser = await hub.logIn('alice');
  const answer = await browser.request(hub.url + path);
  expect(answer.status).toBe(404);
});

test('what may know of no token is refused by introspection as it is described', async () => {
  const init = { method: 'POST', body: '{"scopes":["(no_scope)"]}' };
  const made = await hub.api('/users/alice/tokens', 'admin-service-token', init);
  const { token } = (await made.json()) as { token: string };
  const answer = await hub.api('/oauth2/introspect', token, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'token=a',
  });
  expect([answer.status, await answer.json()]).toMatchObject([
    403,
    { error: 'insufficient_scope' },
  ]);
  const description = await (await hub.api('/openapi.json', undefined)).json();
  expect(description).toHaveProperty(
    ['paths', '/hub/api/oauth2/introspect', 'post', 'responses', '403', 'content'],
    { 'application/json': { schema: { $ref: '#/components/schemas/OAuthError' } } },
  );
});

test.each([
  ['/users', 'sate=active', 'state'],
  ['/users', 'include_stopped_server=1', 'include_stopped_servers'],
  ['/groups', 'limt=1', 'limit'],
])(
  'a parameter of %s that is misspelt, %s, is refused and not passed over',
  async (path, query, meant) => {
    const answer = await hub.api(`${path}?${query}`, 'admin-service-token');
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      message: `There is no parameter ${query.split('=')[0]}; did you mean ${meant}?`,
    });
    const other = await hub.api(`${path}?_=1&utm=x&limit=1`, 'admin-service-token');
    expect(other.status).toBe(200);
  },
);

test.each(['introspect', 'revoke', 'token', 'device_authorization', 'par'])(
  'a client that has failed too often at /oauth2/%s is answered as it is described',
  async (endpoint) => {
    const ask = () =>
      hub.api(`/oauth2/${endpoint}`, undefined, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          authorization: `Basic ${btoa(`no-client-at-${endpoint}:wrong`)}`,
        },
        body: 'token=a&grant_type=client_credentials',
      });
    const answers: Response[] = [];
    while (answers.length < 100 && answers.at(-1)?.status !== 429) answers.push(await ask());
    expect(answers.at(-1)?.status).toBe(429);
    expect(await answers.at(-1)?.json()).toMatchObject({ error: 'invalid_client' });
    const description = await (await hub.api('/openapi.json', undefined)).json();
    expect(description).toHaveProperty(
      ['paths', `/hub/api/oauth2/${endpoint}`, 'post', 'responses', '429', 'content'],
      { 'application/json': { schema: { $ref: '#/components/schemas/OAuthError' } } },
    );
  },
);

test.each(['introspect', 'revoke', 'token'])(
  'a refused request to /oauth2/%s is answered as it is described',
  async (endpoint) => {
    const answer = await hub.api(`/oauth2/${endpoint}`, undefined, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${btoa('service-client:secret-of-the-client')}`,
      },
      body: 'token=a&token=b&grant_type=x&grant_type=y',
    });
    const description = (await (await hub.api('/openapi.json', undefined)).json()) as {
      paths: Record<string, { post: { responses: Record<string, unknown> } }>;
    };
    const { responses } = description.paths[`/hub/api/oauth2/${endpoint}`]?.post ?? {
      responses: {},
    };
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: 'invalid_request' });
    expect(responses['400']).toMatchObject({
      content: { 'application/json': { schema: { $ref: '#/components/schemas/OAuthError' } } },
    });
  },
);
