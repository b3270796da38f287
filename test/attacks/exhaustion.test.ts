import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  eventually,
  head,
  rawClient,
  rawRequest,
  startProxy,
  startRawUpstream,
  startUpstream,
} from './proxy-harness.ts';

const openFiles = () => readdirSync('/proc/self/fd').length;
const upgrade = (path: string) =>
  head(
    `GET ${path}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  );

describe('exhaustion', () => {
  test.for(['/nobody/', '/services/gone/', '/services/open%2f'])(
    'row 48: refused WebSockets to %s leave no open files',
    async (path) => {
      await using proxy = await startProxy();
      proxy.addService('gone', 'http://127.0.0.1:1');
      proxy.addService('open', 'http://127.0.0.1:1');
      const before = openFiles();
      for (let batch = 0; batch < 20; batch++) {
        const answers = await Promise.all(
          Array.from({ length: 50 }, () => rawRequest(proxy.port, upgrade(path))),
        );
        for (const answer of answers) expect(answer).toMatch(/^HTTP\/1.1 (400|404|503) \w/);
      }
      await eventually(() => openFiles() <= before);
      expect(proxy.webSockets.openWebSockets).toBe(0);
    },
  );

  test('row 48: WebSockets given up before the answer leave no open files', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const before = openFiles();
    for (let batch = 0; batch < 10; batch++) {
      const clients = await Promise.all(
        Array.from({ length: 20 }, () => rawClient(proxy.port, upgrade('/services/a/'))),
      );
      await eventually(() => upstream.peers.length === (batch + 1) * 20);
      for (const { socket } of clients) socket.destroy();
    }
    await eventually(() => proxy.webSockets.openWebSockets === 0 && openFiles() <= before);
  });

  test('row 48: clients that reset their connection while they are refused harm nothing', async () => {
    await using proxy = await startProxy();
    proxy.addService('gone', 'http://127.0.0.1:1');
    for (const path of ['/nobody/', '/services/gone/', '/services/open%2f']) {
      for (let round = 0; round < 50; round++) {
        const client = await rawClient(proxy.port, upgrade(path).repeat(3));
        client.socket.resetAndDestroy();
      }
    }
    expect(await rawRequest(proxy.port, upgrade('/nobody/'))).toMatch(/^HTTP\/1.1 404 /);
    await eventually(() => proxy.webSockets.openWebSockets === 0);
  });

  const switching =
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';

  test.for([
    ['a WebSocket', switching],
    ['a WebSocket’s refusal', `HTTP/1.1 403 Forbidden\r\nContent-Length: ${2 ** 26}\r\n\r\n`],
  ] as const)('row 49: a client that stops reading %s fills no memory', async ([, answer]) => {
    const total = 2 ** 26;
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write(answer);
        const piece = Buffer.alloc(65_536);
        let sent = 0;
        const fill = () => {
          while (sent < total) {
            sent += piece.length;
            if (!peer.socket.write(piece)) {
              peer.socket.once('drain', fill);
              return;
            }
          }
          peer.socket.end();
        };
        fill();
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    let toClient: { writableLength: number; writableNeedDrain: boolean } | undefined;
    proxy.server.on('connection', (socket) => {
      toClient = socket;
    });
    const client = await rawClient(proxy.port);
    client.socket.removeAllListeners('data');
    client.socket.pause();
    client.write(upgrade('/services/a/'));
    await eventually(() => toClient?.writableNeedDrain === true);
    let received = 0;
    let maxBuffered = 0;
    for await (const chunk of client.socket) {
      received += (chunk as Buffer).length;
      maxBuffered = Math.max(maxBuffered, toClient?.writableLength ?? 0);
    }
    expect(received).toBeGreaterThan(total);
    expect(maxBuffered).toBeLessThan(2 * 1024 * 1024);
  });

  test('row 38: 5,000 aborted requests leave nothing behind', async () => {
    await using upstream = await startUpstream(() => {});
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const before = openFiles();
    for (let batch = 0; batch < 50; batch++) {
      const clients = await Promise.all(
        Array.from({ length: 100 }, () => rawClient(proxy.port, head('GET /services/a/'))),
      );
      await eventually(() => proxy.liveConnections.size === 100);
      for (const { socket } of clients) socket.destroy();
      await eventually(() => proxy.liveConnections.size === 0);
    }
    await eventually(() => openFiles() <= before);
  });

  test.for(['TRACE', 'CONNECT', 'PRI', 'EVIL'])(
    'row 55: %s reaches no upstream',
    async (method) => {
      await using upstream = await startRawUpstream(() => {});
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const response = await rawRequest(
        proxy.port,
        head(`${method} /services/a/`, 'Connection: close'),
      );
      expect(response).toMatch(/^HTTP\/1.1 40[05] /);
      expect(upstream.peers).toHaveLength(0);
    },
  );

  test('row 42: the streams and WebSockets of a session are gone the moment it ends', async () => {
    await using upstream = await startUpstream((_req, res) => {
      res.write('data: x\n\n');
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const clients = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        rawClient(proxy.port, head('GET /services/a/', `X-Test-Session: s${index % 2}`)),
      ),
    );
    await Promise.all(clients.map((client) => client.until('data: x')));
    proxy.liveConnections.closeWhere(({ sessionId }) => sessionId === 's0', 'session_ended');
    await Promise.all(clients.filter((_, index) => index % 2 === 0).map(({ closed }) => closed));
    expect(clients.filter(({ socket }) => !socket.destroyed)).toHaveLength(10);
  });
});
