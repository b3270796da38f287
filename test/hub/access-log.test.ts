import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  serverPath,
  startUntilReady,
} from '../support/server-hub.ts';
import { managedService, openWithConsent, untilState } from '../support/services.ts';
import { type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;

beforeAll(async () => {
  hub = await createServerHub({
    Hub: {
      load_roles: [
        { name: 'user', scopes: ['self'] },
        { name: 'readers', scopes: ['access:services'], users: ['alice'] },
      ],
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
        await managedService('own', 'fixtures/apps/gateway-app.cjs'),
        { name: 'away', url: `http://127.0.0.1:${await freePort()}`, access: 'public' },
      ],
    },
  });
  await untilState(hub, 'app', 'ready');
  await untilState(hub, 'own', 'ready');
});

afterAll(async () => hub[Symbol.asyncDispose]());

/** The access line of the request that was sent with this id. */
async function lineOf(requestId: string): Promise<Record<string, unknown>> {
  const find = () =>
    hub.logLines.find((line) => line['requestId'] === requestId && line['msg'] === 'forwarded');
  await until(() => find() !== undefined, `${requestId} is logged`);
  return find() ?? {};
}

describe('a request to a service has one line', () => {
  test('with who came, where to, and what came of it', async () => {
    const browser = await hub.logIn('alice');
    await openWithConsent(browser, `${hub.url}services/app/`);
    const url = `${hub.url}services/app/some/page?question=private`;
    const answer = await browser.request(url, { headers: { 'x-request-id': 'page-1' } });
    const line = await lineOf('page-1');
    expect(line).toMatchObject({
      user: 'alice',
      route: '/services/app/',
      method: 'GET',
      path: '/services/app/some/page',
      status: 200,
      address: '127.0.0.1',
      ms: expect.any(Number),
    });
    expect(Number(line['bytes'])).toBeGreaterThan(answer.body.length);
    expect(JSON.stringify(line)).not.toContain('private');
  });

  test('with who is logged in, also where the service itself asks for the login', async () => {
    const browser = await hub.logIn('alice');
    await browser.request(`${hub.url}services/own/`, { headers: { 'x-request-id': 'own-1' } });
    expect(await lineOf('own-1')).toMatchObject({ user: 'alice', route: '/services/own/' });
  });

  test('also when the gateway sends the visitor away', async () => {
    await new FakeBrowser().request(`${hub.url}services/app/`, {
      headers: { 'x-request-id': 'stranger-1' },
    });
    expect(await lineOf('stranger-1')).toMatchObject({ status: 302, path: '/services/app/' });

    await fetch(`${hub.url}services/away/x`, { headers: { 'x-request-id': 'away-1' } });
    expect(await lineOf('away-1')).toMatchObject({ status: 503, route: '/services/away/' });
  });

  test('with the user who was refused', async () => {
    await createUsers(hub, 'mallory');
    const issued = await hub.api('/users/mallory/tokens', adminToken, {
      method: 'POST',
      body: '{}',
    });
    const { token } = (await issued.json()) as { token: string };
    await fetch(`${hub.url}services/app/`, {
      headers: { authorization: `Bearer ${token}`, 'x-request-id': 'refused-1' },
    });
    expect(await lineOf('refused-1')).toMatchObject({ status: 403, user: 'mallory' });
  });

  test('with 499 when the client left before its answer', async () => {
    // The app answers when the whole body is there.
    const upload = request(`${hub.url}services/own/upload`, {
      method: 'POST',
      headers: { 'x-request-id': 'left-1', 'content-length': 100 },
    });
    upload.on('error', () => undefined);
    await new Promise((sent) => upload.write('the beginning', sent));
    upload.destroy();
    expect(await lineOf('left-1')).toMatchObject({ method: 'POST', status: 499 });
  });
});

describe('a WebSocket has one line', () => {
  test('when it closes, with the time it was open and the bytes it was sent', async () => {
    const browser = await hub.logIn('alice');
    await openWithConsent(browser, `${hub.url}services/app/`);
    const socket = new WebSocket(
      `${hub.url.replace('http', 'ws')}services/app/socket?room=private`,
      {
        origin: new URL(hub.url).origin,
        headers: {
          cookie: browser.cookieHeader(`${hub.url}services/app/`),
          'x-request-id': 'socket-1',
        },
      },
    );
    await once(socket, 'message');
    socket.send('x'.repeat(5_000));
    await once(socket, 'message');
    expect(hub.logLines.some((line) => line['requestId'] === 'socket-1')).toBe(false);
    socket.close();
    const line = await lineOf('socket-1');
    expect(line).toMatchObject({
      user: 'alice',
      route: '/services/app/',
      path: '/services/app/socket',
      status: 101,
    });
    expect(Number(line['bytes'])).toBeGreaterThan(5_000);
  });

  test('when it is refused', async () => {
    const socket = new WebSocket(`${hub.url.replace('http', 'ws')}services/app/socket`, {
      headers: { 'x-request-id': 'socket-2' },
    });
    const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    answer.resume();
    expect(await lineOf('socket-2')).toMatchObject({ status: answer.statusCode });
  });
});

test('what is refused before it reaches any route has a line too', async () => {
  const refused = request(hub.url, {
    path: '/services/app/..%2fown/',
    headers: { 'x-request-id': 'crooked-1' },
  }).end();
  const [answer] = (await once(refused, 'response')) as [IncomingMessage];
  answer.resume();
  const socket = new WebSocket(`${hub.url.replace('http', 'ws')}nowhere`, {
    headers: { 'x-request-id': 'crooked-2' },
  });
  await once(socket, 'error');
  const lines = () =>
    hub.logLines.filter(({ requestId }) => /^crooked/.test(String(requestId ?? '')));
  await until(() => lines().length >= 2, 'both are logged');
  expect(lines()).toEqual([
    expect.objectContaining({ path: '/services/app/..%2fown/', status: 400, msg: 'request' }),
    expect.objectContaining({ path: '/nowhere', status: 404, msg: 'request' }),
  ]);
});

test('each service has its own series and the servers of all users share one', async () => {
  await createUsers(hub, 'ada', 'ben');
  for (const name of ['ada', 'ben']) {
    await startUntilReady(hub, serverPath(name));
    await fetch(`${hub.url}user/${name}/`, { redirect: 'manual' });
  }
  await fetch(`${hub.url}services/own/`);
  const exposition = async () => (await hub.api('/metrics', adminToken)).text();
  const wanted = [
    /^hub_forwarded_requests_total\{route_kind="service",service="own",code="200"\} [1-9]/m,
    /^hub_forwarded_requests_total\{route_kind="server",service="",code="401"\} [2-9]/m,
    /^hub_forwarded_request_duration_seconds_count\{route_kind="service",service="own"\} [1-9]/m,
    /^hub_forwarded_request_duration_seconds_bucket\{le="0.5",route_kind="server",service=""\} [2-9]/m,
  ];
  await until(async () => {
    const text = await exposition();
    return wanted.every((pattern) => pattern.test(text));
  }, 'the figures are there');
  expect(await exposition()).not.toMatch(/hub_forwarded\w+\{[^}]*(ada|ben)/);
});
