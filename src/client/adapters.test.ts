import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import express from 'express';
import Koa from 'koa';
import { describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { FakeBrowser } from '../../test/support/fake-browser.ts';
import { startFakeHub } from '../../test/support/fake-hub.ts';
import type { Allowed } from './decision.ts';
import { expressMiddleware } from './express-adapter.ts';
import { HubAuth } from './hub-auth.ts';
import { HubOAuth } from './hub-oauth.ts';
import { koaMiddleware } from './koa-adapter.ts';
import { nodeListener, nodeUpgradeListener } from './node-adapter.ts';

const alice = { name: 'alice', scopes: ['access:services!service=x'] };

async function setUp(createListener: (hubAuth: HubOAuth, failures: unknown[]) => RequestListener) {
  const hub = await startFakeHub();
  hub.loggedIn = alice;
  hub.users.set('good', alice);
  hub.clients.set('service-x', 'the-secret-of-x');
  const hubAuth = new HubOAuth({
    environment: {},
    service_name: 'x',
    api_token: 'the-secret-of-x',
    api_url: hub.apiUrl,
    hub_base_url: hub.origin,
  });
  const failures: unknown[] = [];
  const server = createServer(createListener(hubAuth, failures));
  const origin = await listen(server);
  hub.publicOrigin = origin;
  return {
    hub,
    hubAuth,
    server,
    failures,
    origin,
    prefix: `${origin}/services/x/`,
    browser: new FakeBrowser(),
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await hub[Symbol.asyncDispose]();
    },
  };
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const adapters: Record<string, (hubAuth: HubOAuth, failures: unknown[]) => RequestListener> = {
  'Node http': (hubAuth, failures) =>
    nodeListener(hubAuth, (_request, response, access) => void response.end(access.user.name), {
      onError: (thrown) => failures.push(thrown),
    }),
  Koa: (hubAuth, failures) => {
    const app = new Koa();
    app.use(koaMiddleware(hubAuth, { onError: (thrown) => failures.push(thrown) }));
    app.use((ctx) => {
      ctx.body = (ctx.state['hubAccess'] as Allowed).user.name;
    });
    const listener = app.callback();
    return (incoming, response) => void listener(incoming, response);
  },
  Express: (hubAuth, failures) => {
    const app = express();
    const mounted = express.Router();
    mounted.use(expressMiddleware(hubAuth, { onError: (thrown) => failures.push(thrown) }));
    mounted.use((_request, response) => {
      response.end((response.locals['hubAccess'] as Allowed).user.name);
    });
    app.use('/services/x', mounted);
    return app as unknown as RequestListener;
  },
};

describe.each(Object.entries(adapters))('the adapter for %s', (_name, createListener) => {
  test('logs a browser in and serves it', async () => {
    await using parts = await setUp(createListener);
    const page = await parts.browser.open(`${parts.prefix}page`);
    expect(page).toMatchObject({ status: 200, body: 'alice', url: `${parts.prefix}page` });
  });

  test('serves a program with a token, and answers another with 401 JSON', async () => {
    await using parts = await setUp(createListener);
    const headers = { authorization: 'token good' };
    expect(await (await fetch(parts.prefix, { headers })).text()).toBe('alice');
    const refused = await fetch(parts.prefix, { headers: { authorization: 'token bad' } });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('cache-control')).toBe('no-store');
    expect(await refused.json()).toMatchObject({ code: 'unauthenticated' });
  });

  test('answers a browser with a page, and tells the operator about a failing hub', async () => {
    await using parts = await setUp(createListener);
    await parts.browser.open(parts.prefix);
    parts.hubAuth.cache_max_age = 0;
    parts.hub.failure = 500;
    const page = await parts.browser.request(parts.prefix);
    expect(page.status).toBe(502);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.body).toContain('<h1>');
    expect(parts.failures).toHaveLength(1);
  });
});

test('a handler that throws is a 500, and the operator is told', async () => {
  const failure = new Error('a bug of the service');
  await using parts = await setUp((hubAuth, failures) =>
    nodeListener(
      hubAuth,
      () => {
        throw failure;
      },
      { onError: (thrown) => failures.push(thrown) },
    ),
  );
  const answer = await fetch(parts.prefix, { headers: { authorization: 'token good' } });
  expect(answer.status).toBe(500);
  expect(parts.failures).toEqual([failure]);
});

test('HubAuth never redirects: a browser without a token gets 401', async () => {
  await using parts = await setUp((hubOAuth) => {
    const { api_token, api_url } = hubOAuth;
    const hubAuth = new HubAuth({ environment: {}, service_name: 'x', api_token, api_url });
    return nodeListener(hubAuth, (_request, response) => void response.end());
  });
  expect((await parts.browser.request(parts.prefix)).status).toBe(401);
});

describe('WebSocket handshakes', () => {
  async function setUpSockets() {
    const parts = await setUp((hubAuth) =>
      nodeListener(hubAuth, (_request, response) => void response.end('page')),
    );
    const sockets = new WebSocketServer({ noServer: true });
    sockets.on('connection', (socket) => socket.send('welcome'));
    parts.server.on(
      'upgrade',
      nodeUpgradeListener(parts.hubAuth, (incoming, socket, head) => {
        sockets.handleUpgrade(incoming, socket, head, (client) => {
          sockets.emit('connection', client, incoming);
        });
      }),
    );
    return Object.assign(parts, { url: `${parts.prefix.replace('http', 'ws')}socket` });
  }

  async function outcome(url: string, headers: Record<string, string>): Promise<string | number> {
    const socket = new WebSocket(url, { headers });
    const { promise, resolve } = Promise.withResolvers<string | number>();
    socket.on('message', (data) => resolve((data as Buffer).toString()));
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
    try {
      return await promise;
    } finally {
      socket.on('error', () => undefined);
      socket.terminate();
    }
  }

  test('open with a token, and with the cookie from the own origin', async () => {
    await using parts = await setUpSockets();
    await parts.browser.open(parts.prefix);
    const cookie = parts.browser.cookieHeader(parts.prefix);
    expect(await outcome(parts.url, { authorization: 'token good' })).toBe('welcome');
    expect(await outcome(parts.url, { cookie, origin: parts.origin })).toBe('welcome');
  });

  test('are refused with 401 without credentials, and never redirected', async () => {
    await using parts = await setUpSockets();
    expect(await outcome(parts.url, {})).toBe(401);
  });

  test('are refused with 403 to a page of another origin that uses the cookie', async () => {
    await using parts = await setUpSockets();
    await parts.browser.open(parts.prefix);
    const cookie = parts.browser.cookieHeader(parts.prefix);
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      expect(await outcome(parts.url, { cookie, origin })).toBe(403);
    }
    expect(await outcome(parts.url, { cookie })).toBe(403);
  });

  test('of a visitor who leaves while the hub is asked do not end the process', async () => {
    await using parts = await setUpSockets();
    const gate = Promise.withResolvers<void>();
    parts.hub.gate = gate.promise;
    const upgraded = once(parts.server, 'upgrade');
    const outgoing = request(parts.prefix, {
      headers: { connection: 'Upgrade', upgrade: 'websocket', authorization: 'token other' },
    });
    outgoing.on('error', () => undefined);
    outgoing.end();
    const [, socket] = (await upgraded) as [unknown, Socket];
    const closed = Promise.withResolvers<void>();
    socket.once('close', closed.resolve);
    (outgoing.socket as Socket).resetAndDestroy();
    await closed.promise;
    gate.resolve();
    const answer = await fetch(parts.prefix, { headers: { authorization: 'token good' } });
    expect(await answer.text()).toBe('page');
  });
});

test('an upgrade answer carries a body that programs can read', async () => {
  await using parts = await setUp((hubAuth) => nodeListener(hubAuth, () => undefined));
  parts.server.on(
    'upgrade',
    nodeUpgradeListener(parts.hubAuth, () => undefined),
  );
  const outgoing = request(parts.prefix, {
    headers: { connection: 'Upgrade', upgrade: 'websocket' },
  });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(response.headers['www-authenticate']).toBe('Basic realm="hub", Bearer realm="hub"');
  expect(JSON.parse(await text(response))).toMatchObject({ code: 'unauthenticated' });
});
