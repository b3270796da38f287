import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startFakeHub } from '../../test/support/fake-hub.ts';
import { appCommand, type Echo, startGuardedApp } from '../../test/support/guarded-app.ts';
import { createActivityReport } from './activity-report.ts';

const log = pino({ level: 'silent' });

describe('a guarded app', () => {
  test('is behind a login, and is told who came in', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const page = await parts.browser.open(`${parts.prefix}tree?a=1`);
    expect(page.status).toBe(200);
    const echo = JSON.parse(page.body) as Echo;
    expect(echo.url).toBe('/user/alice/tree?a=1');
    expect(echo.headers).toMatchObject({
      'x-hub-user': 'alice',
      'x-hub-groups': 'staff,a%2Cb',
      'x-hub-scopes': 'access:servers!server=alice/',
    });
  });

  test('is not reached without credentials or without the scope', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    parts.hub.users.set('of-bob', { name: 'bob', scopes: ['access:servers!server=bob/'] });
    const status = async (headers: Record<string, string>) =>
      (await fetch(parts.prefix, { headers })).status;
    expect(await status({})).toBe(401);
    expect(await status({ authorization: 'token bad' })).toBe(401);
    expect(await status({ authorization: 'token of-bob' })).toBe(403);
  });

  test('never sees forged identity headers, cookies of the hub, or the token of the visitor', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const { headers, url } = await parts.echo('/user/alice/?token=good&q=1', {
      headers: {
        'X-Hub-User': 'root',
        'X-Hub-Groups': 'admin',
        'X-Hub-Assertion': 'forged',
        'X-HUB-ANYTHING': 'forged',
        cookie:
          'mine=1; hub-session-id=s; jupyterhub-session-id=s; hub-user-alice=x; hub-user-bob=y; service-x=z',
      },
    });
    expect(headers).toMatchObject({ 'x-hub-user': 'alice', cookie: 'mine=1' });
    expect(
      Object.keys(headers)
        .filter((name) => name.startsWith('x-hub'))
        .sort(),
    ).toEqual(['x-hub-groups', 'x-hub-scopes', 'x-hub-user']);
    expect(JSON.stringify(headers)).not.toContain('good');
    expect(url).toBe('/user/alice/?q=1');
  });

  test('an underscore in a header name forges nothing', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const { headers } = await parts.echo('/user/alice/', { headers: { x_hub_user: 'root' } });
    expect(headers['x_hub_user']).toBeUndefined();
  });

  test('cannot set cookies of the hub, nor any outside its prefix', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const answer = await fetch(`${parts.prefix}cookie`, {
      headers: { authorization: 'token good' },
    });
    expect(answer.headers.getSetCookie()).toEqual(['mine=1; Path=/user/alice/']);
  });

  test('may end its answer with trailers, which the gateway gives to those who ask for them', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const outgoing = request(`${parts.prefix}trailers`, {
      headers: { authorization: 'token good' },
    });
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    expect(await text(response)).toBe('a part, the rest');
    expect(response.trailers).toEqual({ 'x-sum': '5' });
  });

  test('gets bodies of every method whole, and never as a second request', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const smuggled = 'GET /user/alice/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const method of ['POST', 'DELETE', 'OPTIONS', 'PUT']) {
      const outgoing = request(`${parts.prefix}submit`, {
        method,
        headers: { authorization: 'token good', 'transfer-encoding': 'chunked' },
      });
      outgoing.end(smuggled);
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      const echo = JSON.parse(await text(response)) as Echo;
      expect(echo).toMatchObject({ method, url: '/user/alice/submit', body: smuggled });
    }
  });

  test('that breaks off in the middle of an answer does not leave the client waiting', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const answer = await fetch(`${parts.prefix}abort`, {
      headers: { authorization: 'token good' },
    });
    await expect(answer.text()).rejects.toThrow();
  });

  test.for(['/user/alice/../bob/', '/user/alice/%2e%2e/bob/', '/user/alice\\x', '//user/alice/'])(
    'is never asked for the ambiguous path %s',
    async (path) => {
      await using parts = await startGuardedApp();
      await parts.singleuser.ready;
      const socket = connect(parts.port, '127.0.0.1');
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: token good\r\nConnection: close\r\n\r\n`,
      );
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
    },
  );

  test.for(['/user/alice//evil.example/', '/user/alice/%2Fevil.example/', '/user/alice///'])(
    'that does not know its prefix never takes %s for the name of a host, to which it could redirect',
    async (path) => {
      await using parts = await startGuardedApp({ stripsPrefix: true });
      await parts.singleuser.ready;
      const url = new URL(parts.origin).href.slice(0, -1) + path;
      const headers = { authorization: 'token good' };
      expect((await fetch(url, { headers })).status).toBe(400);
    },
  );

  test('that looks at names gets its own as Host, and its visitor in the header that it reads', async () => {
    const identity_headers = { user: 'X-Remote-User' };
    await using parts = await startGuardedApp({
      forwarding: { host: 'upstream', identity_headers },
    });
    await parts.singleuser.ready;
    const { headers } = await parts.echo('/user/alice/', { headers: { 'x-remote-user': 'bob' } });
    expect(headers).toMatchObject({
      host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      'x-forwarded-host': new URL(parts.origin).host,
      'x-remote-user': 'alice',
    });
    expect(headers['host']).not.toBe(headers['x-forwarded-host']);
  });

  test('is not asked for anything outside its prefix', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const answer = await fetch(`${parts.origin}/user/bob/`, {
      headers: { authorization: 'token good' },
    });
    expect(answer.status).toBe(404);
  });

  test('that does not know its prefix gets paths without it, and its redirects are put right', async () => {
    await using parts = await startGuardedApp({ stripsPrefix: true });
    await parts.singleuser.ready;
    const echo = await parts.echo('/user/alice/a/b?c=1');
    expect(echo.url).toBe('/a/b?c=1');
    expect(echo.headers['x-forwarded-prefix']).toBe('/user/alice');
    const answer = await fetch(`${parts.prefix}redirect`, {
      headers: { authorization: 'token good' },
      redirect: 'manual',
    });
    expect(answer.headers.get('location')).toBe('/user/alice/next');
  });

  test('may listen on a Unix socket that no other account can open', async () => {
    await using parts = await startGuardedApp({
      usesSocket: true,
      command: [...appCommand, '{socket}'],
    });
    await parts.singleuser.ready;
    const { environment } = await parts.echo('/user/alice/');
    expect(environment['PORT']).toBeUndefined();
    const socketPath = decodeURIComponent(
      environment['HUB_SERVICE_URL']?.replace('http+unix://', '') ?? '',
    );
    expect((await stat(socketPath)).mode & 0o777).toBe(0o600);
    expect((await stat(join(socketPath, '..'))).mode & 0o777).toBe(0o700);
  });

  test('has the variables of the hub but not its token', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const { environment } = await parts.echo('/user/alice/');
    expect(environment['HUB_USER']).toBe('alice');
    expect(JSON.stringify(environment)).not.toContain('the-token-of-the-server');
  });

  test('is announced as starting with 503 and Retry-After until it answers', async () => {
    await using parts = await startGuardedApp({
      command: [process.execPath, '--eval', 'setInterval(() => {}, 1e6)'],
    });
    const answer = await fetch(parts.prefix, { headers: { authorization: 'token good' } });
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(parts.hub.lookups).toBe(0);
  });
});

describe('WebSockets', () => {
  async function firstMessage(socket: WebSocket): Promise<string> {
    const [data] = (await once(socket, 'message')) as [Buffer];
    return data.toString();
  }

  test('reach the app with who is there, and carry messages both ways', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const socket = new WebSocket(`ws://127.0.0.1:${parts.port}/user/alice/ws?token=good`);
    expect(await firstMessage(socket)).toBe('/user/alice/ws alice');
    const large = 'x'.repeat(300_000);
    socket.send(large);
    expect(await firstMessage(socket)).toBe(large);
    socket.close();
    await once(socket, 'close');
  });

  test('of a page of another origin are refused before the app hears of them', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    await parts.browser.open(parts.prefix);
    const socket = new WebSocket(`ws://127.0.0.1:${parts.port}/user/alice/ws`, {
      headers: { cookie: parts.browser.cookieHeader(parts.prefix), origin: 'https://evil.example' },
    });
    socket.on('error', () => undefined);
    const [, response] = (await once(socket, 'unexpected-response')) as [
      unknown,
      { statusCode: number },
    ];
    expect(response.statusCode).toBe(403);
    socket.terminate();
  });

  test('end when the token is revoked, though they are open', async () => {
    await using parts = await startGuardedApp({ cacheMaxAgeSeconds: 0 });
    await parts.singleuser.ready;
    const socket = new WebSocket(`ws://127.0.0.1:${parts.port}/user/alice/ws?token=good`);
    await firstMessage(socket);
    parts.hub.users.delete('good');
    await once(socket, 'close');
  });

  test('end when the app ends', async () => {
    await using parts = await startGuardedApp();
    await parts.singleuser.ready;
    const socket = new WebSocket(`ws://127.0.0.1:${parts.port}/user/alice/ws?token=good`);
    await firstMessage(socket);
    parts.singleuser.signal('SIGKILL');
    await once(socket, 'close');
    expect(await parts.singleuser.exited).toBe(128 + 9);
  });
});

describe('activity', () => {
  test('is reported with the token of the server when there was traffic', async () => {
    await using hub = await startFakeHub();
    using report = createActivityReport({
      url: `${hub.apiUrl}/users/alice/activity`,
      token: 'any',
      serverName: 'lab',
      intervalMs: 1e9,
      log,
    });
    await report.send();
    expect(hub.activity).toEqual([]);
    report.touch();
    await report.send();
    await report.send();
    expect(hub.activity).toEqual([
      {
        path: '/hub/api/users/alice/activity',
        body: {
          last_activity: expect.stringMatching(/Z$/) as string,
          servers: { lab: { last_activity: expect.stringMatching(/Z$/) as string } },
        },
      },
    ]);
  });

  test('that could not be reported is reported the next time', async () => {
    await using hub = await startFakeHub();
    const url = `${hub.apiUrl}/users/alice/activity`;
    using report = createActivityReport({
      url,
      token: 'any',
      serverName: '',
      intervalMs: 1e9,
      log,
    });
    hub.failure = 503;
    report.touch();
    await report.send();
    hub.failure = undefined;
    await report.send();
    expect(hub.activity).toHaveLength(1);
  });

  test('of a connection that is open for long is reported as often as there is any', async () => {
    await using hub = await startFakeHub();
    let trafficMs = 1_000;
    using report = createActivityReport({
      url: `${hub.apiUrl}/users/alice/activity`,
      token: 'any',
      serverName: '',
      intervalMs: 1e9,
      lastTrafficMs: () => trafficMs,
      log,
    });
    await report.send();
    expect(hub.activity).toEqual([]);
    for (trafficMs of [2_000, 3_000, 3_000]) await report.send();
    expect(hub.activity).toHaveLength(2);
  });

  test('of the last minutes is reported when the server ends', async () => {
    const parts = await startGuardedApp();
    await parts.singleuser.ready;
    await parts.echo('/user/alice/');
    await parts.singleuser[Symbol.asyncDispose]();
    expect(parts.hub.activity).toHaveLength(1);
    await parts.hub[Symbol.asyncDispose]();
  });
});
