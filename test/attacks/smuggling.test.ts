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
} from './proxy-harness.ts';

/** An application that notes every request it understands, with what identity it came. */
async function startWitness() {
  const seen: string[] = [];
  const upstream = await startUpstream((req, res) => {
    let body = '';
    req.on('data', (chunk) => {
      body += chunk;
    });
    req.on('end', () => {
      seen.push(`${req.method} ${req.url} ${req.headers['x-hub-user']} ${body}`);
      res.end(req.url);
    });
  });
  return { ...upstream, seen };
}

const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const inner = 'GET /services/a/admin HTTP/1.1\r\nHost: a\r\nX-Hub-User: admin\r\n\r\n';

describe('request smuggling', () => {
  test.for(['DELETE', 'OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'PROPFIND'])(
    'row 1: chunked %s carries no second request',
    async (method) => {
      await using upstream = await startWitness();
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const request = head(
        `${method} /services/a/x`,
        'Transfer-Encoding: chunked',
        'Connection: close',
      );
      const response = await rawRequest(proxy.port, request + chunked(inner));
      expect(statusOf(response)).toBe(200);
      expect(upstream.seen).toEqual([`${method} /services/a/x alice ${inner}`]);
      await rawRequest(proxy.port, head('GET /services/a/after', 'Connection: close'));
      expect(upstream.seen.slice(1)).toEqual(['GET /services/a/after alice ']);
    },
  );

  test.for(['DELETE', 'OPTIONS', 'GET'])(
    'row 1: %s with a length keeps its body to itself',
    async (method) => {
      await using upstream = await startWitness();
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const client = await rawClient(
        proxy.port,
        head(`${method} /services/a/x`, `Content-Length: ${inner.length}`) +
          inner +
          head('GET /services/a/next', 'Connection: close'),
      );
      await client.closed;
      expect(upstream.seen).toEqual([
        `${method} /services/a/x alice ${inner}`,
        'GET /services/a/next alice ',
      ]);
    },
  );

  test('row 1: what an upstream sees of a chunked DELETE is framed once', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => {
        if (peer.text().endsWith('0\r\n\r\n')) {
          peer.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        }
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(
      proxy.port,
      head('DELETE /services/a/x', 'Transfer-Encoding: chunked', 'Connection: close'),
    );
    client.write(`5\r\nhello\r\n`);
    await eventually(() => upstream.received().includes('hello'));
    client.write('0\r\n\r\n');
    await client.closed;
    const received = upstream.received();
    expect(received.match(/transfer-encoding: chunked\r\n/gi)).toHaveLength(1);
    expect(received).not.toMatch(/content-length/i);
    expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test.for([
    ['both framings', ['Content-Length: 5', 'Transfer-Encoding: chunked'], chunked('x')],
    ['two lengths', ['Content-Length: 1', 'Content-Length: 2'], 'xx'],
    ['a list of lengths', ['Content-Length: 1, 1'], 'x'],
    ['a signed length', ['Content-Length: +4'], 'xxxx'],
    ['an unknown coding', ['Transfer-Encoding: xchunked'], chunked('x')],
    ['a coding after chunked', ['Transfer-Encoding: chunked, identity'], chunked('x')],
    ['a coding with a tab', ['Transfer-Encoding:\x0bchunked'], chunked('x')],
    ['a header folded over two lines', ['X-A: b', ' c'], ''],
    ['a space before the colon', ['Content-Length : 5'], 'xxxxx'],
    [
      'a chunk size out of bounds',
      ['Transfer-Encoding: chunked'],
      '10000000000000000\r\nx\r\n0\r\n\r\n',
    ],
    ['a chunk that ends with a bare line feed', ['Transfer-Encoding: chunked'], '1\nx\n0\n\n'],
    ['two hosts', ['Host: b'], ''],
  ] as const)(
    'row 44: %s is 400 and a pooled connection stays in step',
    async ([, headers, body]) => {
      await using upstream = await startWitness();
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const request = head('POST /services/a/x', 'Connection: close', ...headers) + body;
      const response = await rawRequest(proxy.port, request);
      expect(statusOf(response)).toBe(400);
      expect(upstream.seen.filter((line) => !line.includes('/after'))).toEqual([]);
      const after = await rawRequest(
        proxy.port,
        head('GET /services/a/after', 'Connection: close'),
      );
      expect(after).toContain('/services/a/after');
      expect(upstream.seen).toEqual(['GET /services/a/after alice ']);
    },
  );

  test('row 44: a request line or header that ends with a bare line feed is 400', async () => {
    await using upstream = await startWitness();
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const request = 'GET /services/a/ HTTP/1.1\nHost: a\nConnection: close\n\n';
    expect(statusOf(await rawRequest(proxy.port, request))).toBe(400);
    expect(upstream.seen).toEqual([]);
  });

  test('row 44: chunk extensions do not reach the upstream', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => {
        if (peer.text().includes('hello'))
          peer.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const request = head('POST /services/a/', 'Transfer-Encoding: chunked', 'Connection: close');
    const response = await rawRequest(proxy.port, `${request}5;evil=1\r\nhello\r\n0\r\n\r\n`);
    expect(statusOf(response)).toBe(200);
    expect(upstream.received()).not.toContain('evil');
  });

  test('row 45: an upgrade to h2c is a plain request and opens no tunnel', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => peer.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const request = head(
      'GET /services/a/',
      'Connection: Upgrade, HTTP2-Settings, close',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
    );
    const response = await rawRequest(proxy.port, request);
    expect(response).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(upstream.received()).not.toMatch(/upgrade|http2-settings/i);
  });

  test('row 45: another protocol next to websocket opens no tunnel either', async () => {
    await using upstream = await startWitness();
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    for (const upgrade of ['h2c, websocket', 'websocket, h2c', 'websocket/13', 'TLS/1.0']) {
      const request = head('GET /services/a/', 'Connection: Upgrade', `Upgrade: ${upgrade}`);
      const client = await rawClient(proxy.port, request);
      expect(statusOf(await client.until('\r\n\r\n'))).toBe(200);
      client.socket.destroy();
    }
  });

  test('row 46: 101 in answer to a plain request is 502, and no tunnel', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () =>
        peer.write(
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nevil',
        ),
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/'));
    expect(statusOf(await client.until('\r\n\r\n'))).toBe(502);
    client.write('tunnelled bytes\r\n\r\n');
    await client.closed;
    expect(client.text()).not.toContain('evil');
    expect(upstream.received()).not.toContain('tunnelled');
  });

  const upgrade = head(
    'GET /services/a/',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  );

  test.for([
    ['a wrong key', 'Upgrade: websocket\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n'],
    ['no key', 'Upgrade: websocket\r\n'],
    ['another protocol', 'Upgrade: h2c\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n'],
  ] as const)('row 46: 101 with %s is 502, and no tunnel', async ([, headers]) => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () =>
        peer.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n${headers}\r\nevil`),
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, `${upgrade}tunnelled bytes`);
    await client.closed;
    expect(statusOf(client.text())).toBe(502);
    expect(client.text()).not.toMatch(/evil|101 Switching/);
    expect(upstream.received()).not.toContain('tunnelled');
    await upstream.peers[0]?.closed;
  });

  test('row 46: after 200 in answer to a WebSocket, later bytes reach no application', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () =>
        peer.write(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n',
        ),
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, `${upgrade}GET /services/a/admin HTTP/1.1\r\n\r\n`);
    await client.closed;
    expect(client.text()).toMatch(/\r\n\r\nok$/);
    expect(upstream.received()).not.toContain('/services/a/admin');
  });

  test('row 54: an upload broken off never disturbs the next user of a pooled connection', async () => {
    await using upstream = await startWitness();
    await using proxy = await startProxy({ max_upstream_connections: 1 });
    proxy.addService('a', upstream.url);
    await rawRequest(proxy.port, head('GET /services/a/warm', 'Connection: close'));
    for (const framing of ['Content-Length: 1000', 'Transfer-Encoding: chunked']) {
      const first = await rawClient(proxy.port, head('POST /services/a/first', framing));
      first.write(framing.startsWith('T') ? '5\r\nhello\r\n' : 'hello');
      await eventually(() => proxy.liveConnections.size === 1);
      first.socket.destroy();
      const second = await rawRequest(
        proxy.port,
        head('GET /services/a/second', 'Connection: close'),
      );
      expect(second).toMatch(/\r\n\r\n.*\/services\/a\/second/s);
    }
    expect(upstream.seen.every((line) => !line.includes('/first'))).toBe(true);
  });

  test('row 54: bytes an upstream sends unasked are no visitor’s answer', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => {
        const answer = `HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n`;
        peer.write(`${answer}mine${answer}evil`);
      });
    });
    await using proxy = await startProxy({ max_upstream_connections: 1 });
    proxy.addService('a', upstream.url);
    for (let round = 0; round < 3; round++) {
      const response = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
      expect(response).not.toContain('evil');
    }
  });

  test('row 54: an answer longer than its length is not the beginning of the next', async () => {
    await using upstream = await startRawUpstream((peer) => {
      let isFirst = true;
      peer.socket.on('more', () => {
        if (isFirst) peer.write('HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil');
        else peer.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine');
        isFirst = false;
      });
    });
    await using proxy = await startProxy({ max_upstream_connections: 1 });
    proxy.addService('a', upstream.url);
    await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    const response = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(response).not.toContain('evil');
  });
});
