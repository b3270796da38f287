import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { json, text } from 'node:stream/consumers';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { managedService, openWithConsent, untilState } from '../support/services.ts';
import { createTestHub, submitForm, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
let appUrl: string;

beforeAll(async () => {
  const gateway = { access: 'gateway' };
  hub = await createTestHub({
    Hub: {
      load_groups: [{ name: 'team', users: ['alice', 'bob'] }],
      load_roles: [
        { name: 'user', scopes: ['self'] },
        { name: 'opens-services', scopes: ['access:services'], users: ['alice', 'bob', 'dora'] },
        { name: 'team-opens-app', scopes: ['access:services'], groups: ['visitors'] },
      ],
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', gateway),
        await managedService('other', 'fixtures/apps/gateway-app.cjs', gateway),
        { name: 'caller', api_token: 'caller-service-token' },
        { name: 'down', url: `http://127.0.0.1:${await freePort()}`, ...gateway },
      ],
    },
  });
  appUrl = `${hub.url}services/app/`;
  await untilState(hub, 'app', 'ready');
  await untilState(hub, 'other', 'ready');
});

afterAll(async () => hub[Symbol.asyncDispose]());

interface Seen {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A browser that has opened the app once and so holds its cookie. */
async function visitor(userName: string): Promise<FakeBrowser> {
  const browser = await hub.logIn(userName);
  expect((await openWithConsent(browser, appUrl)).status).toBe(200);
  return browser;
}

/** A request as a program makes it: no navigation, no HTML. */
async function ask(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: IncomingMessage['headers']; body: string }> {
  const outgoing = request(url, { headers: { accept: 'application/json', ...headers } }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: await text(response),
  };
}

async function tokenOf(userName: string): Promise<string> {
  await hub.logIn(userName);
  const answer = await hub.api(`/users/${userName}/tokens`, 'admin-service-token', {
    method: 'POST',
    body: JSON.stringify({ note: 'for a test' }),
  });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { token: string }).token;
}

function seenBy(answer: { readonly body: string }): Seen {
  return JSON.parse(answer.body) as Seen;
}

function openSocket(headers: Record<string, string>): WebSocket {
  return new WebSocket(`${appUrl.replace('http', 'ws')}socket`, { headers });
}

/** The status of the answer that refuses a WebSocket. */
async function refusalOf(socket: WebSocket): Promise<number> {
  const [outgoing, response] = (await once(socket, 'unexpected-response')) as [
    ClientRequest,
    IncomingMessage,
  ];
  outgoing.destroy();
  return response.statusCode ?? 0;
}

async function openStream(browser: FakeBrowser): Promise<IncomingMessage> {
  const cookie = browser.cookieHeader(appUrl);
  const outgoing = request(`${appUrl}events`, { headers: { cookie, accept: '*/*' } }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  // The hub cuts a stream it closes; that is no error of this test.
  response.on('error', () => undefined);
  return response;
}

describe('tokens at a guarded service', () => {
  test.each(['token', 'Bearer'])(
    'in the Authorization header with the scheme %s admit, and are kept from the app',
    async (scheme) => {
      const token = await tokenOf('alice');
      const answer = await ask(appUrl, { authorization: `${scheme} ${token}` });
      expect(answer.status).toBe(200);
      expect(seenBy(answer).headers).toMatchObject({ 'x-hub-user': 'alice' });
      expect(answer.body).not.toContain(token);
    },
  );

  test('in the address admit a program, and are kept from the app', async () => {
    const token = await tokenOf('alice');
    const answer = await ask(`${appUrl}data?a=1&token=${token}&b=2`);
    expect(answer.status).toBe(200);
    expect(seenBy(answer).url).toBe('/services/app/data?a=1&b=2');
    expect(answer.body).not.toContain(token);
  });

  test('in the address of a page move into the cookie of the service, once its reader says so', async () => {
    const token = await tokenOf('alice');
    const browser = await hub.logIn('alice');
    const asked = await browser.open(`${appUrl}data?a=1&token=${token}`);
    expect(asked.body).toContain('Continue as alice?');
    expect(browser.cookie('service-app')).toBeUndefined();
    const answer = await submitForm(browser, asked, {});
    expect(answer.status).toBe(302);
    expect(answer.headers.location).toBe('/services/app/data?a=1');
    expect(browser.cookie('service-app')?.path).toBe('/services/app/');
    expect((await browser.open(`${appUrl}data?a=1`)).status).toBe(200);
  });

  test('that are unknown are 401', async () => {
    expect((await ask(appUrl, { authorization: 'token nonsense' })).status).toBe(401);
    expect((await ask(`${appUrl}?token=nonsense`)).status).toBe(401);
  });

  test('that the hub does not know are left to the app where the cookie admits', async () => {
    const cookie = (await visitor('alice')).cookieHeader(appUrl);
    const answer = await ask(appUrl, { cookie, authorization: 'token of-the-app-itself' });
    expect(answer.status).toBe(200);
    expect(seenBy(answer).headers['authorization']).toBe('token of-the-app-itself');
  });

  test('of a user who may not open the service are 403', async () => {
    const token = await tokenOf('eve');
    const answer = await ask(appUrl, { authorization: `token ${token}` });
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body)).toMatchObject({ status: 403, code: 'forbidden' });
  });

  test('of a service open another one only where its roles say so', async () => {
    expect((await ask(appUrl, { authorization: 'token caller-service-token' })).status).toBe(403);
    expect((await ask(appUrl, { authorization: 'token admin-service-token' })).status).toBe(200);
  });
});

describe('requests without credentials', () => {
  test('of a program are 401 and JSON, not a redirect', async () => {
    const answer = await ask(appUrl);
    expect(answer.status).toBe(401);
    expect(answer.headers.location).toBeUndefined();
    expect(JSON.parse(answer.body)).toMatchObject({ status: 401 });
  });

  test('of a script in a page are 401, not a redirect', async () => {
    const answer = await ask(appUrl, { 'sec-fetch-mode': 'cors', accept: '*/*' });
    expect(answer.status).toBe(401);
  });

  test('of a person are redirected to the authorization endpoint with a state', async () => {
    const browser = await hub.logIn('alice');
    const answer = await browser.request(`${appUrl}page?x=1`);
    expect(answer.status).toBe(302);
    const location = new URL(answer.headers.location ?? '', hub.url);
    expect(location.pathname).toBe('/hub/api/oauth2/authorize');
    expect(location.searchParams.get('client_id')).toBe('service-app');
    expect(location.searchParams.get('state')).toMatch(/^[\w-]{16,}$/);
  });
});

describe('WebSockets', () => {
  test('pass with a login, both ways', async () => {
    const browser = await visitor('alice');
    const socket = openSocket({
      cookie: browser.cookieHeader(appUrl),
      origin: new URL(hub.url).origin,
    });
    const [greeting] = (await once(socket, 'message')) as [Buffer];
    expect(JSON.parse(String(greeting))).toMatchObject({
      url: '/services/app/socket',
      headers: { 'x-hub-user': 'alice' },
    });
    socket.send('hello');
    const [echo] = (await once(socket, 'message')) as [Buffer];
    expect(String(echo)).toBe('hello');
    socket.close();
    await once(socket, 'close');
  });

  test('without a login are 401', async () => {
    expect(await refusalOf(openSocket({ origin: new URL(hub.url).origin }))).toBe(401);
  });

  test('that a page of another site opens are 403', async () => {
    const browser = await visitor('alice');
    const cookie = browser.cookieHeader(appUrl);
    expect(await refusalOf(openSocket({ cookie, origin: 'https://evil.example' }))).toBe(403);
  });

  test('at a path without a service are 404', async () => {
    const socket = new WebSocket(`${hub.url.replace('http', 'ws')}services/nowhere/`);
    expect(await refusalOf(socket)).toBe(404);
  });
});

describe('streams', () => {
  test('of events arrive one by one, while the answer goes on', async () => {
    const stream = await openStream(await visitor('alice'));
    const [first] = (await once(stream, 'data')) as [Buffer];
    expect(String(first)).toBe('data: 1\n\n');
    const [second] = (await once(stream, 'data')) as [Buffer];
    expect(String(second)).toBe('data: 2\n\n');
    stream.destroy();
  });

  test('and WebSockets of a login are closed by its logout, others stay', async () => {
    const leaving = await visitor('alice');
    const staying = await visitor('alice');
    const origin = new URL(hub.url).origin;
    const sockets = [leaving, staying].map((browser) =>
      openSocket({ cookie: browser.cookieHeader(appUrl), origin }),
    );
    await Promise.all(sockets.map((socket) => once(socket, 'message')));
    const [stream, otherStream] = [await openStream(leaving), await openStream(staying)];
    const streamClosed = new Promise((resolve) => stream.once('close', resolve));
    stream.resume();
    const socketClosed = once(sockets[0]!, 'close');

    await leaving.request(`${hub.url}hub/logout`);
    await Promise.all([streamClosed, socketClosed]);

    expect(sockets[1]!.readyState).toBe(WebSocket.OPEN);
    await once(otherStream, 'data');
    otherStream.destroy();
    sockets[1]!.close();
    const afterwards = await leaving.request(appUrl, { headers: { 'sec-fetch-mode': 'cors' } });
    expect(afterwards.status).toBe(401);
  });

  test('and WebSockets are closed when a role is taken away', async () => {
    const add = (method: string) =>
      hub.api('/groups/visitors/users', 'admin-service-token', {
        method,
        body: JSON.stringify({ users: ['frida'] }),
      });
    await hub.logIn('frida');
    await hub.api('/groups/visitors', 'admin-service-token', { method: 'POST' });
    expect((await add('POST')).ok).toBe(true);
    const browser = await visitor('frida');
    const cookie = browser.cookieHeader(appUrl);
    const socket = openSocket({ cookie, origin: new URL(hub.url).origin });
    await once(socket, 'message');
    const stream = await openStream(browser);
    const streamClosed = new Promise((resolve) => stream.once('close', resolve));
    stream.resume();
    const socketClosed = once(socket, 'close');

    expect((await add('DELETE')).ok).toBe(true);
    await Promise.all([streamClosed, socketClosed]);
    expect((await ask(appUrl, { cookie })).status).toBe(403);
  });
});

describe('a service that does not answer', () => {
  test('is a 503 page that tries again for a person, and 503 JSON for a program', async () => {
    await untilState(hub, 'down', 'unhealthy');
    const browser = await hub.logIn('alice');
    const page = await browser.request(`${hub.url}services/down/`);
    expect(page.status).toBe(503);
    expect(page.headers['content-type']).toContain('text/html');
    expect(Number(page.headers['retry-after'])).toBeGreaterThan(0);
    const answer = await ask(`${hub.url}services/down/`);
    expect(answer.status).toBe(503);
    expect(JSON.parse(answer.body)).toMatchObject({ status: 503 });
  });

  test('and breaks off in the middle cuts the connection of the client', async () => {
    const cookie = (await visitor('alice')).cookieHeader(appUrl);
    const outgoing = request(`${appUrl}dies`, { headers: { cookie } }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    await expect(text(response)).rejects.toThrow(/aborted/);
  });

  test('and ends while it answers cuts the client, is restarted, and serves again', async () => {
    const cookie = (await visitor('bob')).cookieHeader(appUrl);
    const outgoing = request(`${appUrl}ends`, { headers: { cookie } }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    await expect(text(response)).rejects.toThrow(/aborted/);
    await until(
      async () => (await ask(appUrl, { cookie })).status === 200,
      'the service serves again',
    );
  });
});

describe('what an app is told and what it is not', () => {
  test('is who is there, whatever the client claims', async () => {
    const cookie = (await visitor('alice')).cookieHeader(appUrl);
    const answer = await ask(appUrl, {
      cookie,
      'X-Hub-User': 'root',
      'x-hub-groups': 'admins',
      'X-HUB-SCOPES': 'admin:users',
      'X-Hub-Assertion': 'forged',
      'X-Hub-Anything': 'forged',
      X_Hub_User: 'root',
      'X-Forwarded-For': '6.6.6.6',
      'X-Forwarded-Host': 'evil.example',
    });
    const { headers } = seenBy(answer);
    expect(headers['x-hub-user']).toBe('alice');
    expect(headers['x-hub-groups']).toBe('team');
    expect(answer.body).not.toMatch(/root|admins|admin:users|forged|6\.6\.6\.6|evil\.example/);
  });

  test('comes with an assertion that the published keys verify, for this service alone', async () => {
    const cookie = (await visitor('alice')).cookieHeader(appUrl);
    const { headers } = seenBy(await ask(appUrl, { cookie }));
    const keys = createRemoteJWKSet(new URL(`${hub.apiUrl}/assertion-keys`));
    const { payload } = await jwtVerify(headers['x-hub-assertion'] ?? '', keys, {
      audience: 'service-app',
    });
    expect(payload).toMatchObject({ sub: 'alice', groups: ['team'] });
    await expect(
      jwtVerify(headers['x-hub-assertion'] ?? '', keys, { audience: 'service-other' }),
    ).rejects.toThrow(/aud/);
  });

  test('are no cookies of the hub or of other services, but its own', async () => {
    const browser = await visitor('alice');
    await openWithConsent(browser, `${hub.url}services/other/`);
    const cookie = [
      browser.cookieHeader(`${hub.url}hub/`),
      browser.cookieHeader(appUrl),
      browser.cookieHeader(`${hub.url}services/other/`),
      'hub-user-bob=secret',
      'theme=dark',
    ].join('; ');
    const answer = await ask(appUrl, { cookie });
    expect(answer.status).toBe(200);
    expect(seenBy(answer).headers['cookie']).toBe('theme=dark');
  });

  test('may not set cookies of the hub', async () => {
    const cookie = (await visitor('alice')).cookieHeader(appUrl);
    const names = ['hub-hub-login', 'hub-session-id', 'hub-user-alice', 'service-other', 'theme'];
    const query = new URLSearchParams(names.map((name): [string, string] => ['name', name]));
    const answer = await ask(`${appUrl}set-cookie?${query}`, { cookie });
    const set = (answer.headers['set-cookie'] ?? []).map((line) => line.split('=')[0]);
    expect(set).toEqual(['theme']);
  });

  test('are bodies of any size, which take no memory on their way', async () => {
    const cookie = (await visitor('alice')).cookieHeader(appUrl);
    const piece = Buffer.alloc(1024 * 1024);
    const pieces = 300;
    const before = process.memoryUsage.rss();
    let largest = before;
    const outgoing = request(`${appUrl}upload`, { method: 'POST', headers: { cookie } });
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    for (let sent = 0; sent < pieces; sent += 1) {
      if (!outgoing.write(piece)) await once(outgoing, 'drain');
      largest = Math.max(largest, process.memoryUsage.rss());
    }
    outgoing.end();
    const [response] = await answered;
    expect(await json(response)).toMatchObject({ bytes: pieces * piece.length });
    expect(largest - before).toBeLessThan(100 * 1024 * 1024);
  });
});
