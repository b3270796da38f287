import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
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
import { proxySection } from '../../platform/config/sections-schema.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('when one side fails', () => {
  test('a client that leaves takes its request to the upstream along', async () => {
    const closed: Promise<unknown>[] = [];
    await using upstream = await startUpstream((_req, res) => {
      closed.push(once(res, 'close'));
      res.write('x');
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/'));
    await client.until('\r\n\r\n');
    client.socket.destroy();
    await closed[0];
    await eventually(() => proxy.liveConnections.size === 0);
    expect(proxy.errors).toEqual([]);
  });

  test('a client that leaves while the upstream thinks takes its request along', async () => {
    const seen: Promise<unknown>[] = [];
    await using upstream = await startUpstream((_req, res) => {
      seen.push(once(res, 'close'));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/'));
    await eventually(() => seen.length === 1);
    client.socket.destroy();
    await seen[0];
    await eventually(() => proxy.closed.length === 1);
    expect(proxy.closed[0]?.status).toBe(499);
  });

  test('a client that left before it was let in is not forwarded', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxy();
    const route = proxy.addService('a', upstream.url);
    proxy.server.removeAllListeners('request');
    const arrived = once(proxy.server, 'request');
    const client = await rawClient(proxy.port, head('GET /services/a/'));
    const [req, res] = (await arrived) as [IncomingMessage, ServerResponse];
    const closed = once(res, 'close');
    client.socket.destroy();
    await closed;
    const address = { address: '127.0.0.1', protocol: 'http', host: 'hub.test' } as const;
    proxy.forwarder.forward(req, res, { route, path: '/services/a/', client: address });
    expect(proxy.liveConnections.size).toBe(0);
    expect(upstream.peers).toHaveLength(0);
  });

  test('an upstream that dies in the middle of its answer ends the client’s connection', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
        setImmediate(() => peer.socket.destroy());
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const response = await rawRequest(proxy.port, head('GET /services/a/'));
    expect(response).toContain('hello');
    expect(response).not.toMatch(/0\r\n\r\n$/);
  });

  test('a refused connection is 503, an answer broken off before it began 502', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => peer.socket.destroy());
    });
    await using proxy = await startProxy();
    proxy.addService('gone', 'http://127.0.0.1:1');
    proxy.addService('broken', upstream.url);
    proxy.addService('unix', 'http+unix://%2Fnonexistent%2Fa.sock');
    const ask = (name: string, ...more: string[]) =>
      rawRequest(proxy.port, `${head(`POST /services/${name}/`, 'Connection: close', ...more)}abc`);
    expect(statusOf(await ask('gone', 'Content-Length: 3'))).toBe(503);
    expect(statusOf(await ask('unix', 'Content-Length: 3'))).toBe(503);
    expect(statusOf(await ask('broken', 'Content-Length: 3'))).toBe(502);
    expect(upstream.peers).toHaveLength(1);
    expect(proxy.errors.map(({ code }) => code)).toEqual([
      'unavailable',
      'unavailable',
      'upstream_failed',
    ]);
  });

  test('an upstream that says nothing is 504', async () => {
    await using upstream = await startUpstream(() => {});
    await using proxy = await startProxy({ upstream_timeout: 0.05 });
    proxy.addService('a', upstream.url);
    const response = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(statusOf(response)).toBe(504);
  });

  test('by default an upstream has five minutes to begin its answer', () => {
    expect(proxySection.parse({}).upstream_timeout).toBe(300);
  });

  test('only the time until an answer begins is bound: uploads and streams may take longer', async () => {
    let endStream = () => {};
    await using upstream = await startUpstream((req, res) => {
      if (req.url?.endsWith('/stream') === true) {
        res.write('begun');
        endStream = () => res.end(' and ended');
      } else if (req.method === 'POST') {
        req.resume();
        req.once('end', () => res.end('uploaded'));
      }
    });
    // Long enough for an app on a machine with much else to do.
    await using proxy = await startProxy({ upstream_timeout: 1 });
    proxy.addService('a', upstream.url);
    const stream = await rawClient(proxy.port, head('GET /services/a/stream', 'Connection: close'));
    await stream.until('begun');
    const upload = await rawClient(
      proxy.port,
      `${head('POST /services/a/', 'Connection: close', 'Content-Length: 2')}x`,
    );
    // By then the other two have had longer than they would be given.
    for (let round = 0; round < 2; round += 1) {
      const silent = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
      expect(statusOf(silent)).toBe(504);
    }
    endStream();
    await stream.until('and ended');
    upload.write('x');
    await upload.until('uploaded');
  });

  test('the timeout of a route stands over that of the configuration', async () => {
    const responses: ServerResponse[] = [];
    await using upstream = await startUpstream((_req, res) => {
      responses.push(res);
    });
    await using proxy = await startProxy({ upstream_timeout: 0.05 });
    proxy.routes.add({
      prefix: '/slow/',
      target: upstream.url,
      access: 'public',
      owner: { kind: 'extra' },
      upstreamTimeoutMs: 0,
    });
    proxy.addService('a', upstream.url);
    const patient = await rawClient(proxy.port, head('GET /slow/', 'Connection: close'));
    await eventually(() => responses.length === 1);
    await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    responses[0]?.end('at last');
    await patient.until('at last');
  });

  test.for(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])(
    '%s without a body is sent once more when an idle connection was closed under it',
    async (method) => {
      let isFirst = true;
      await using upstream = await startRawUpstream((peer) => {
        const isBroken = isFirst;
        isFirst = false;
        peer.socket.once('more', () => {
          if (isBroken) peer.socket.destroy();
          else peer.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        });
      });
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const response = await rawRequest(
        proxy.port,
        head(`${method} /services/a/`, 'Connection: close'),
      );
      expect(statusOf(response)).toBe(200);
      expect(upstream.peers).toHaveLength(2);
    },
  );

  test.for([
    ['of announced length', 'Content-Length: 5', 'first'],
    ['in chunks', 'Transfer-Encoding: chunked', '2\r\nfi\r\n3\r\nrst\r\n0\r\n\r\n'],
  ] as const)(
    'so is PUT with a short body %s, which is sent whole again',
    async ([, framing, body]) => {
      await using upstream = await startRawUpstream((peer) => {
        const isBroken = upstream.peers.length === 1;
        peer.socket.on('more', () => {
          if (!peer.text().includes('rst')) return;
          if (isBroken) peer.socket.destroy();
          else peer.write(ok);
        });
      });
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const response = await rawRequest(
        proxy.port,
        head('PUT /services/a/', framing, 'Connection: close') + body,
      );
      expect(statusOf(response)).toBe(200);
      expect(upstream.peers).toHaveLength(2);
      const sent = upstream.peers.map((peer) =>
        peer.text().replaceAll(/^.*?\r\n\r\n|\r\n|[\da-f]+(?=\r\n)/gs, ''),
      );
      expect(sent[0]).toBe('first');
      expect(sent[1]).toContain('first');
    },
  );

  test.for([
    ['POST', 5],
    ['PUT', 70_000],
  ] as const)('%s whose body of %i bytes was under way is not', async ([method, length]) => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => {
        if (peer.text().includes('\r\n\r\nb')) peer.socket.destroy();
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const response = await rawRequest(
      proxy.port,
      head(`${method} /services/a/`, `Content-Length: ${length}`, 'Connection: close') +
        'b'.repeat(length),
    );
    expect(statusOf(response)).toBe(502);
    expect(upstream.peers).toHaveLength(1);
  });

  test('a request is repeated once at most, and POST never', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => peer.socket.destroy());
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const ask = (method: string) =>
      rawRequest(proxy.port, head(`${method} /services/a/`, 'Connection: close'));
    expect(statusOf(await ask('GET'))).toBe(502);
    expect(upstream.peers).toHaveLength(2);
    expect(statusOf(await ask('POST'))).toBe(502);
    expect(upstream.peers).toHaveLength(3);
  });

  test('a route that is not ready answers 503 without touching the upstream', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    proxy.routes.setReady('/services/a/', false);
    const response = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(statusOf(response)).toBe(503);
    expect(proxy.errors[0]?.retryAfterSeconds).toBe(2);
    expect(upstream.peers).toHaveLength(0);
  });

  test('an upstream with too many requests waiting answers 503 at once', async () => {
    let arrived = 0;
    await using upstream = await startUpstream(() => {
      arrived += 1;
    });
    await using proxy = await startProxy({ max_upstream_connections: 1 });
    proxy.addService('a', upstream.url);
    const clients = [];
    for (let index = 0; index < 3; index++) {
      clients.push(await rawClient(proxy.port, head('GET /services/a/')));
      await eventually(
        () => arrived === 1 && proxy.liveConnections.size === Math.min(index + 1, 2),
      );
    }
    expect(statusOf((await clients[2]?.until('\r\n\r\n')) ?? '')).toBe(503);
    expect(arrived).toBe(1);
  });
});
