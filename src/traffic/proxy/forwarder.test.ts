import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  eventually,
  head,
  rawClient,
  rawRequest,
  startProxy,
  startRawUpstream,
  startUpstream,
  statusOf,
} from '../../../test/attacks/proxy-harness.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('a request', () => {
  test('arrives with its path, its body and who is asking', async () => {
    await using upstream = await startUpstream(async (req, res) => {
      let body = '';
      for await (const chunk of req) body += String(chunk);
      res.end(JSON.stringify({ url: req.url, method: req.method, headers: req.headers, body }));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const response = await fetch(`http://127.0.0.1:${proxy.port}/services/a/x%20y?q=%2F`, {
      method: 'POST',
      body: 'hello',
      headers: { 'x-hub-user': 'mallory' },
    });
    expect(await response.json()).toMatchObject({
      url: '/services/a/x%20y?q=%2F',
      method: 'POST',
      body: 'hello',
      headers: {
        host: `127.0.0.1:${proxy.port}`,
        'content-length': '5',
        'x-hub-user': 'alice',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-proto': 'http',
        'x-forwarded-port': String(proxy.port),
      },
    });
  });

  test('without a body is sent without framing, and keeps the connection to the upstream', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => {
        if (peer.text().endsWith('\r\n\r\n')) peer.write(ok);
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    for (let round = 0; round < 3; round++) {
      const response = await rawRequest(
        proxy.port,
        head('GET /services/a/', 'Connection: close', 'Keep-Alive: timeout=1'),
      );
      expect(statusOf(response)).toBe(200);
    }
    expect(upstream.peers).toHaveLength(1);
    expect(upstream.received()).not.toMatch(/content-length|transfer-encoding|keep-alive: /i);
  });

  test('reaches an upstream on a Unix socket, which never shows in a Location', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'proxy-'));
    const path = join(directory, 'a.sock');
    const server = createServer((_req, res) => {
      res.writeHead(302, { location: 'http://localhost/services/a/next' });
      res.end();
    });
    await once(server.listen(path), 'listening');
    try {
      await using proxy = await startProxy();
      proxy.addService('a', `http+unix://${encodeURIComponent(path)}`);
      const response = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
      expect(statusOf(response)).toBe(302);
      expect(response).toContain('location: /services/a/next\r\n');
    } finally {
      server.closeAllConnections();
      server.close();
      rmSync(directory, { recursive: true });
    }
  });

  test('with Expect: 100-continue is told to go on, and the upstream is not asked', async () => {
    await using upstream = await startUpstream((req, res) => {
      req.resume().on('end', () => res.end(`expect=${req.headers.expect}`));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(
      proxy.port,
      head('PUT /services/a/', 'Expect: 100-continue', 'Content-Length: 3', 'Connection: close'),
    );
    await client.until('HTTP/1.1 100 Continue');
    client.write('abc');
    expect(await client.until('expect=')).toContain('expect=undefined');
  });

  test('counts as activity of its route, and so do the pieces of its answer', async () => {
    await using upstream = await startUpstream((_req, res) => {
      res.write('first');
      res.write('second');
    });
    await using proxy = await startProxy();
    const route = proxy.addService('a', upstream.url);
    route.lastActivityMs = 0;
    const client = await rawClient(proxy.port, head('GET /services/a/'));
    await client.until('second');
    expect(route.lastActivityMs).toBeGreaterThan(0);
    client.socket.destroy();
    await eventually(() => proxy.liveConnections.size === 0);
  });

  test('is counted by kind of route and status', async () => {
    await using upstream = await startUpstream((req, res) => {
      res.writeHead(req.url?.endsWith('/x') ? 404 : 200).end();
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    for (const path of ['', '', 'x']) {
      await rawRequest(proxy.port, head(`GET /services/a/${path}`, 'Connection: close'));
    }
    await rawRequest(proxy.port, head('TRACE /services/a/', 'Connection: close'));
    await eventually(() => proxy.closed.length === 4);
    expect(proxy.closed).toEqual(
      [200, 200, 404, 405].map((status) => ({ route: '/services/a/', status })),
    );
  });
});

describe('an answer', () => {
  test('begins before its first piece, so that an event stream is open at once', async () => {
    const responses: ServerResponse[] = [];
    await using upstream = await startUpstream((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.flushHeaders();
      responses.push(res);
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/'));
    expect(await client.until('\r\n\r\n')).toContain('content-type: text/event-stream');
    responses[0]?.write('data: 1\n\n');
    await client.until('data: 1');
  });

  test.for([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', /content-length: 5\r\n/],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', /^HTTP\/1.1 204 No Content\r\n/],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n', /etag: "1"\r\n/],
    ['GET', 'HTTP/1.1 200 Fine\r\nContent-Length: 0\r\n\r\n', /^HTTP\/1.1 200 Fine\r\n/],
  ] as const)('to %s without a body stays without one: %j', async ([method, answer, expected]) => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => peer.write(answer));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const response = await rawRequest(
      proxy.port,
      head(`${method} /services/a/`, 'Connection: close'),
    );
    expect(response).toMatch(expected);
    expect(response).toMatch(/\r\n\r\n$/);
    expect(response).not.toMatch(/transfer-encoding/i);
  });

  test('loses interim answers and trailers on the way', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () =>
        peer.write(
          'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' +
            'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n' +
            '2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n',
        ),
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const response = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(response).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(response).toContain('ok');
    expect(response).not.toMatch(/103|x-sum|link/i);
  });

  test('waits for a client that reads slowly, without piling up in memory', async () => {
    const total = 64 * 1024 * 1024;
    await using upstream = await startUpstream(async (_req, res) => {
      res.writeHead(200, { 'content-length': String(total) });
      for (let sent = 0; sent < total; sent += 65_536) {
        if (!res.write(Buffer.alloc(65_536))) await once(res, 'drain');
      }
      res.end();
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    let response: ServerResponse | undefined;
    proxy.server.on('request', (_req, res) => {
      response = res;
    });
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(head('GET /services/a/', 'Connection: close'));
    await eventually(() => response?.writableNeedDrain === true);
    let received = 0;
    let maxBuffered = 0;
    for await (const chunk of socket) {
      received += (chunk as Buffer).length;
      maxBuffered = Math.max(maxBuffered, response?.writableLength ?? 0);
    }
    expect(received).toBeGreaterThan(total);
    expect(maxBuffered).toBeLessThan(1024 * 1024);
  });

  test('waits for an upstream that reads slowly, without piling the upload up in memory', async () => {
    const total = 64 * 1024 * 1024;
    let received = 0;
    await using upstream = await startUpstream(async (req, res) => {
      for await (const chunk of req) received += (chunk as Buffer).length;
      res.end('done');
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    let request: IncomingMessage | undefined;
    proxy.server.on('request', (req) => {
      request = req;
    });
    const client = await rawClient(
      proxy.port,
      head('POST /services/a/', `Content-Length: ${total}`, 'Connection: close'),
    );
    let maxBuffered = 0;
    for (let sent = 0; sent < total; sent += 65_536) {
      if (!client.write(Buffer.alloc(65_536))) await once(client.socket, 'drain');
      maxBuffered = Math.max(maxBuffered, request?.readableLength ?? 0);
    }
    await client.until('done');
    expect(received).toBe(total);
    expect(maxBuffered).toBeLessThan(1024 * 1024);
  });

  test('that comes before the upload is over reaches the client, whose connection goes on', async () => {
    await using upstream = await startUpstream((req, res) => {
      if (req.method === 'POST') res.writeHead(403, { 'content-length': '2' }).end('no');
      else res.end('next');
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('POST /services/a/', 'Content-Length: 300000'));
    client.write(Buffer.alloc(1000, 'x'));
    expect(statusOf(await client.until(/\r\n\r\nno/))).toBe(403);
    client.write(Buffer.alloc(299_000, 'x'));
    client.write(head('GET /services/a/', 'Connection: close'));
    await client.until('next');
    await eventually(() => proxy.liveConnections.size === 0);
  });
});

describe('a body above the limit', () => {
  test('is refused by its length before the upstream hears of it', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxy({ max_body_size: 10 });
    proxy.addService('a', upstream.url);
    const client = await rawClient(
      proxy.port,
      `${head('POST /services/a/', 'Content-Length: 11', 'Connection: close')}${'x'.repeat(11)}`,
    );
    await client.closed;
    expect(statusOf(client.text())).toBe(413);
    expect(upstream.peers).toHaveLength(0);
  });

  test('is cut off as it passes the limit when it is chunked', async () => {
    let received = 0;
    let isOver = false;
    await using upstream = await startUpstream((req) => {
      req.on('data', (chunk: Buffer) => {
        received += chunk.length;
      });
      req.on('close', () => {
        isOver = true;
      });
    });
    await using proxy = await startProxy({ max_body_size: 10 });
    proxy.addService('a', upstream.url);
    const client = await rawClient(
      proxy.port,
      head('POST /services/a/', 'Transfer-Encoding: chunked', 'Connection: close'),
    );
    client.write('a\r\n0123456789\r\n');
    await eventually(() => received === 10);
    client.write('1\r\nx\r\n');
    expect(statusOf(await client.until('\r\n\r\n'))).toBe(413);
    client.write('0\r\n\r\n');
    await client.closed;
    await eventually(() => isOver);
    expect(received).toBe(10);
  });
});

describe('closeWhere', () => {
  test('ends the event streams of one session and no other', async () => {
    await using upstream = await startUpstream((_req, res) => {
      res.write('data: x\n\n');
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const open = (session: string) =>
      rawClient(proxy.port, head('GET /services/a/', `X-Test-Session: ${session}`));
    const leaving = await open('one');
    const staying = await open('two');
    await leaving.until('data: x');
    await staying.until('data: x');
    const closed = proxy.liveConnections.closeWhere(
      ({ sessionId }) => sessionId === 'one',
      'session_ended',
    );
    expect(closed).toBe(1);
    await leaving.closed;
    expect(staying.socket.destroyed).toBe(false);
    expect(proxy.liveConnections.size).toBe(1);
  });

  test('answers 401 where the answer had not begun', async () => {
    const closed: Promise<unknown>[] = [];
    await using upstream = await startUpstream((_req, res) => {
      closed.push(once(res, 'close'));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/'));
    await eventually(() => closed.length === 1);
    proxy.liveConnections.closeWhere(() => true, 'session_ended');
    expect(statusOf(await client.until('\r\n\r\n'))).toBe(401);
    await closed[0];
  });

  test('removing a route lets its requests end, and closes idle connections', async () => {
    const responses: ServerResponse[] = [];
    await using upstream = await startUpstream((_req, res) => {
      responses.push(res);
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/', 'Connection: close'));
    await eventually(() => responses.length === 1);
    proxy.routes.remove('/services/a/');
    responses[0]?.end('bye');
    await client.until('bye');
    await eventually(
      () => responses[0]?.socket === null || responses[0]?.socket?.destroyed === true,
    );
    expect(
      statusOf(await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'))),
    ).toBe(404);
  });
});
