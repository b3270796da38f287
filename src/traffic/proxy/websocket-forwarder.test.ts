import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import {
  eventually,
  head,
  type RawPeer,
  rawClient,
  rawRequest,
  startProxy,
  startRawUpstream,
  startUpstream,
  statusOf,
} from '../../../test/attacks/proxy-harness.ts';

const key = 'dGhlIHNhbXBsZSBub25jZQ==';
const accept = createHash('sha1')
  .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
  .digest('base64');
const switching = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n`;
const handshake = (path = '/services/a/', ...headers: string[]) =>
  head(
    `GET ${path}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
    ...headers,
  );

async function startEcho() {
  const server = new WebSocketServer({ noServer: true });
  const upstream = await startUpstream(
    (_req, res) => void res.writeHead(404).end(),
    (http) =>
      http.on('upgrade', (req, socket, upgradeHead) =>
        server.handleUpgrade(req, socket, upgradeHead, (ws) => server.emit('connection', ws, req)),
      ),
  );
  server.on('connection', (ws, req) => {
    ws.on('message', (data, isBinary) => ws.send(data, { binary: isBinary }));
    if (req.url?.includes('/hello'))
      ws.send(JSON.stringify({ url: req.url, headers: req.headers }));
  });
  return {
    ...upstream,
    sockets: server.clients,
    async [Symbol.asyncDispose]() {
      for (const client of server.clients) client.terminate();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

async function openSocket(
  port: number,
  path = '/services/a/',
  headers: Record<string, string> = {},
) {
  const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
  await once(ws, 'open');
  return ws;
}

describe('a WebSocket', () => {
  test('carries messages both ways, with who is asking in its handshake', async () => {
    await using upstream = await startEcho();
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const ws = new WebSocket(`ws://127.0.0.1:${proxy.port}/services/a/x%20y|z/hello?q=1?2`, 'v1', {
      headers: { 'x-hub-user': 'mallory', x_hub_user: 'mallory', cookie: 'hub-hub-login=s; a=1' },
    });
    const [greeting] = await once(ws, 'message');
    const { url, headers } = JSON.parse(String(greeting));
    expect(url).toBe('/services/a/x%20y|z/hello?q=1?2');
    expect(headers).toMatchObject({
      'x-hub-user': 'alice',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': `127.0.0.1:${proxy.port}`,
      cookie: 'a=1',
      'sec-websocket-protocol': 'v1',
    });
    expect(headers).not.toHaveProperty('x_hub_user');
    const payload = Buffer.alloc(1_000_000, 'x');
    ws.send(payload);
    const [echo] = await once(ws, 'message');
    expect(Buffer.compare(echo as Buffer, payload)).toBe(0);
    ws.terminate();
    await eventually(() => upstream.sockets.size === 0 && proxy.webSockets.openWebSockets === 0);
  });

  test('passes a close with its code and reason in both directions', async () => {
    await using upstream = await startEcho();
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const first = await openSocket(proxy.port);
    const [serverSide] = upstream.sockets;
    first.close(4001, 'mine');
    expect(String((await once(serverSide as WebSocket, 'close'))[1])).toBe('mine');
    const second = await openSocket(proxy.port);
    for (const ws of upstream.sockets) ws.close(4002, 'yours');
    const [code, reason] = await once(second, 'close');
    expect([code, String(reason)]).toEqual([4002, 'yours']);
    await eventually(() => proxy.webSockets.openWebSockets === 0);
  });

  test('counts as activity of its route, from either side', async () => {
    await using upstream = await startEcho();
    await using proxy = await startProxy();
    const route = proxy.addService('a', upstream.url);
    const ws = await openSocket(proxy.port);
    proxy.webSockets.recordTraffic();
    route.lastActivityMs = 0;
    proxy.webSockets.recordTraffic();
    expect(route.lastActivityMs).toBe(0);
    for (const serverSide of upstream.sockets) serverSide.send('from the server');
    await once(ws, 'message');
    proxy.webSockets.recordTraffic();
    expect(route.lastActivityMs).toBeGreaterThan(0);
    route.lastActivityMs = 0;
    ws.send('from the client');
    await once(ws, 'message');
    proxy.webSockets.recordTraffic();
    expect(route.lastActivityMs).toBeGreaterThan(0);
    ws.terminate();
  });

  test('that is not used is closed after the idle time', async () => {
    await using upstream = await startEcho();
    await using proxy = await startProxy({ websocket_idle_timeout: 0.000_001 });
    proxy.addService('a', upstream.url);
    const ws = await openSocket(proxy.port);
    const closed = once(ws, 'close');
    proxy.webSockets.recordTraffic();
    await eventually(() => {
      proxy.webSockets.recordTraffic();
      return ws.readyState !== WebSocket.OPEN;
    });
    expect((await closed)[0]).toBe(1001);
  });

  test.for([
    ['shutting_down', 1001],
    ['session_ended', 1008],
  ] as const)('is closed with a close frame when the reason is %s', async ([reason, code]) => {
    await using upstream = await startEcho();
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const staying = await openSocket(proxy.port, '/services/a/', { 'x-test-session': 'two' });
    const leaving = await openSocket(proxy.port, '/services/a/', { 'x-test-session': 'one' });
    const closed = once(leaving, 'close');
    expect(proxy.liveConnections.closeWhere(({ sessionId }) => sessionId === 'one', reason)).toBe(
      1,
    );
    expect((await closed)[0]).toBe(code);
    await eventually(() => upstream.sockets.size === 1);
    expect(staying.readyState).toBe(WebSocket.OPEN);
    staying.terminate();
  });

  test('is cut without a close frame in the middle of a message', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write(`${switching}\r\n`);
        peer.write(Buffer.from([0x82, 10, 1, 2, 3]));
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, handshake());
    await client.until('\x01\x02\x03');
    proxy.liveConnections.closeWhere(() => true, 'session_ended');
    await client.closed;
    expect(client.bytes().subarray(-5)).toEqual(Buffer.from([0x82, 10, 1, 2, 3]));
  });

  test('of a user with too many open is refused with 429, until one is closed', async () => {
    await using upstream = await startEcho();
    await using proxy = await startProxy({ max_websockets_per_user: 2 });
    proxy.addService('a', upstream.url);
    const first = await openSocket(proxy.port);
    const second = await openSocket(proxy.port);
    expect(statusOf(await rawRequest(proxy.port, handshake()))).toBe(429);
    first.terminate();
    await eventually(() => proxy.webSockets.openWebSockets === 1);
    const third = await openSocket(proxy.port);
    second.terminate();
    third.terminate();
  });

  test('is refused on a route that is not ready', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    proxy.routes.setReady('/services/a/', false);
    const answer = await rawRequest(proxy.port, handshake());
    expect(answer).toMatch(/^HTTP\/1.1 503 Service Unavailable\r\n/);
    expect(answer).toMatch(/^retry-after: 2\r$/im);
    expect(upstream.peers).toHaveLength(0);
  });
});

describe('a handshake', () => {
  test('that the upstream refuses brings its answer with the body and the cleaned headers', async () => {
    await using upstream = await startUpstream((_req, res) => {
      res.writeHead(403, { 'set-cookie': ['hub-hub-login=evil', 'a=1; Path=/'], 'x-why': 'no' });
      res.write('not ');
      res.end('you');
    });
    upstream.server.on('upgrade', (_req, socket) => {
      socket.end(
        'HTTP/1.1 403 Forbidden\r\nSet-Cookie: hub-hub-login=evil\r\nSet-Cookie: a=1; Path=/\r\n' +
          'X-Why: no\r\nContent-Length: 7\r\n\r\nnot you',
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const answer = await rawRequest(proxy.port, handshake());
    expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
    expect(answer).toContain('x-why: no\r\n');
    expect(answer).toContain('set-cookie: a=1; Path=/services/a/\r\n');
    expect(answer).not.toContain('evil');
    expect(answer).toMatch(/\r\n\r\nnot you$/);
    expect(proxy.webSockets.openWebSockets).toBe(0);
  });

  test('whose refusal breaks off closes the client’s connection', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write('HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf');
        setImmediate(() => peer.socket.destroy());
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    expect(await rawRequest(proxy.port, handshake())).toContain('half');
  });

  test('to a refused connection is 503, broken off 502', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => peer.socket.destroy());
    });
    await using proxy = await startProxy();
    proxy.addService('gone', 'http://127.0.0.1:1');
    proxy.addService('broken', upstream.url);
    expect(statusOf(await rawRequest(proxy.port, handshake('/services/gone/')))).toBe(503);
    expect(statusOf(await rawRequest(proxy.port, handshake('/services/broken/')))).toBe(502);
    expect(proxy.webSockets.openWebSockets).toBe(0);
  });

  test('without an answer is 504 after the timeout, and the upstream connection is closed', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxy({ upstream_timeout: 0.05 });
    proxy.addService('a', upstream.url);
    expect(statusOf(await rawRequest(proxy.port, handshake()))).toBe(504);
    await upstream.peers[0]?.closed;
  });

  test.for(['destroy', 'resetAndDestroy', 'end'] as const)(
    'whose client leaves by %s before the answer leaves nothing open',
    async (manner) => {
      await using upstream = await startRawUpstream(() => {});
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const clients: RawPeer[] = [];
      for (let index = 0; index < 5; index++)
        clients.push(await rawClient(proxy.port, handshake()));
      await eventually(() => upstream.peers.length === 5);
      await Promise.all(upstream.peers.map((peer) => peer.until('\r\n\r\n')));
      for (const { socket } of clients) socket[manner]();
      await Promise.all(upstream.peers.map((peer) => peer.closed));
      await eventually(() => proxy.webSockets.openWebSockets === 0);
      expect(proxy.liveConnections.size).toBe(0);
    },
  );

  test('cut off from the hub’s side is answered and taken back from the upstream', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, handshake());
    await eventually(() => upstream.peers.length === 1);
    proxy.liveConnections.closeWhere(() => true, 'session_ended');
    await client.closed;
    expect(statusOf(client.text())).toBe(401);
    await upstream.peers[0]?.closed;
  });
});

describe('an open WebSocket', () => {
  async function openRaw({ allowHalfOpen = false } = {}) {
    const upstream = await startRawUpstream(
      (peer) => {
        peer.socket.once('more', () => peer.write(`${switching}\r\n`));
      },
      { allowHalfOpen },
    );
    const proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, handshake());
    await client.until('\r\n\r\n');
    const [peer] = upstream.peers;
    if (peer === undefined) throw new Error('the upstream was not asked');
    return { upstream, proxy, client, peer };
  }

  test('whose upstream vanishes closes the client’s connection', async () => {
    const { upstream, proxy, client, peer } = await openRaw();
    peer.socket.resetAndDestroy();
    await client.closed;
    await eventually(() => proxy.webSockets.openWebSockets === 0);
    await proxy[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  test('whose client vanishes closes the upstream’s connection', async () => {
    const { upstream, proxy, client, peer } = await openRaw();
    client.socket.resetAndDestroy();
    await peer.closed;
    await eventually(() => proxy.webSockets.openWebSockets === 0);
    await proxy[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  /** A peer that holds on to its half notices that ours is gone when it writes. */
  const isCut = (peer: RawPeer) => () => {
    if (!peer.socket.destroyed) peer.write('x');
    return peer.socket.destroyed;
  };

  test('whose upstream never closes its half is cut after the grace', async () => {
    const { upstream, proxy, client, peer } = await openRaw({ allowHalfOpen: true });
    client.socket.end();
    await once(peer.socket, 'end');
    await eventually(isCut(peer));
    await eventually(() => proxy.webSockets.openWebSockets === 0);
    await proxy[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  test('whose client never closes its half is cut after the grace', async () => {
    const { upstream, proxy, client, peer } = await openRaw({ allowHalfOpen: true });
    client.socket.allowHalfOpen = true;
    peer.socket.end();
    await once(client.socket, 'end');
    await eventually(isCut(client));
    await eventually(() => proxy.webSockets.openWebSockets === 0);
    await proxy[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  test('keeps the answer’s headers clean', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () =>
        peer.write(
          `${switching}Set-Cookie: hub-session-id=evil; Path=/\r\nSet-Cookie: b=1; Domain=test\r\nKeep-Alive: timeout=5\r\n\r\n`,
        ),
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, handshake());
    const answer = await client.until('\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1.1 101 Switching Protocols\r\n/);
    expect(answer).toContain(`sec-websocket-accept: ${accept}\r\n`);
    expect(answer).toContain('set-cookie: b=1\r\n');
    expect(answer).not.toMatch(/evil|keep-alive/i);
    client.socket.destroy();
  });
});
