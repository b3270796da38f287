import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/attacks/proxy-harness.ts';
import { ok, over, Sent, send, useUpstream } from '../../../../test/support/upstream-world.ts';

const upstream = useUpstream();

describe('a pool', () => {
  test('sends one request after the other on one connection', async () => {
    using pool = upstream.poolOf();
    const requests: string[] = [];
    upstream.answer = (socket, text) => {
      requests.push(text);
      socket.write(ok);
    };
    for (const path of ['/a?b', '/\xe9']) {
      const { status, body } = await over(send(pool, { path, headers: ['X-A', '1\xe9'] }));
      expect({ status, body }).toEqual({ status: 200, body: 'ok' });
    }
    expect(upstream.sockets).toHaveLength(1);
    const rest = 'X-A: 1\xe9\r\nHost: upstream.test\r\nConnection: keep-alive\r\n\r\n';
    expect(requests).toEqual([`GET /a?b HTTP/1.1\r\n${rest}`, `GET /\xe9 HTTP/1.1\r\n${rest}`]);
  });

  test('sends the headers that many requests share after those of each, and refuses what breaks the framing', async () => {
    using pool = upstream.poolOf();
    const requests: string[] = [];
    upstream.answer = (socket, text) => {
      requests.push(text);
      socket.write(ok);
    };
    const addedHeaders = ['X-Hub-User', 'ada', 'X-Hub-Groups', 'one,two'];
    for (const path of ['/a', '/b']) {
      await over(send(pool, { path, headers: ['Host', 'hub.test', 'X-A', path], addedHeaders }));
    }
    const rest = 'X-Hub-User: ada\r\nX-Hub-Groups: one,two\r\nConnection: keep-alive\r\n\r\n';
    expect(requests).toEqual(
      ['/a', '/b'].map(
        (path) => `GET ${path} HTTP/1.1\r\nHost: hub.test\r\nX-A: ${path}\r\n${rest}`,
      ),
    );
    for (const value of ['a\r\nX-Hub-User: root', 'a\nb', 'a\0', '\u0141']) {
      const { error } = await over(send(pool, { addedHeaders: ['X-Hub-User', value] }));
      expect(error?.code).toBe('UPSTREAM_BAD_REQUEST');
    }
    expect(requests).toHaveLength(2);
  });

  test('opens no more connections than it may, and lets the rest wait their turn', async () => {
    using pool = upstream.poolOf({ maxConnections: 2 });
    const waiting: Socket[] = [];
    upstream.answer = (socket) => waiting.push(socket);
    const all = Array.from({ length: 4 }, () => send(pool));
    expect(pool.isFull).toBe(true);
    await eventually(() => waiting.length === 2);
    for (let round = 0; round < 4; round += 1) {
      await eventually(() => waiting.length > 0);
      waiting.shift()?.write(ok);
    }
    await Promise.all(all.map(over));
    expect(all.every(({ hasEnded }) => hasEnded)).toBe(true);
    expect(upstream.sockets).toHaveLength(2);
    expect(pool.isFull).toBe(false);
  });

  test('that is closed answers what it has and keeps no connection', async () => {
    using pool = upstream.poolOf({ maxConnections: 1 });
    const [under, waiting] = [send(pool), send(pool)];
    pool.close();
    await over(under);
    await over(waiting);
    expect([under.hasEnded, waiting.hasEnded]).toEqual([true, true]);
    await eventually(() => pool.isEmpty);
    expect(send(pool).error?.code).toBe('UPSTREAM_GONE');
  });

  test('that is destroyed breaks off what it has', async () => {
    using pool = upstream.poolOf({ maxConnections: 1 });
    upstream.answer = () => {};
    const [under, waiting] = [send(pool), send(pool)];
    await eventually(() => upstream.sockets.length === 1);
    pool.destroy();
    expect([under.error?.code, waiting.error?.code]).toEqual(['UPSTREAM_GONE', 'UPSTREAM_GONE']);
    expect(pool.isEmpty).toBe(true);
  });

  test('tells each request that nothing listens, and connects again for the next', async () => {
    using pool = upstream.poolOf();
    const { port } = upstream.server.address() as AddressInfo;
    upstream.server.close();
    const failed = await Promise.all([over(send(pool)), over(send(pool))]);
    expect(failed.map(({ error }) => error?.code)).toEqual(['ECONNREFUSED', 'ECONNREFUSED']);
    await once(upstream.server.listen(port, '127.0.0.1'), 'listening');
    expect((await over(send(pool))).hasEnded).toBe(true);
  });
});

test('a connection that closes under a request takes the idle ones along, as after a restart', async () => {
  using pool = upstream.poolOf();
  await Promise.all([over(send(pool)), over(send(pool)), over(send(pool))]);
  expect(upstream.sockets).toHaveLength(3);
  upstream.answer = (socket) => socket.destroy();
  expect((await over(send(pool))).error).toBeDefined();
  expect(pool.isEmpty).toBe(true);
});

test('a request for a fresh connection takes none that is idle or freed', async () => {
  using pool = upstream.poolOf({ maxConnections: 2 });
  const answering: string[] = [];
  upstream.answer = (socket, text) => {
    answering.push(`${upstream.sockets.indexOf(socket)} ${text.split(' ')[1]}`);
    socket.write(ok);
  };
  await over(send(pool));
  for (const path of ['/fresh', '/full']) {
    const sent = new Sent();
    pool.dispatch({ method: 'GET', path, headers: [], body: null }, sent, true);
    await over(sent);
  }
  expect(answering).toEqual(['0 /', '1 /fresh', '1 /full']);
});

describe('a request', () => {
  test('that is given up takes its connection along, or its place in the queue', async () => {
    using pool = upstream.poolOf({ maxConnections: 1 });
    upstream.answer = () => {};
    const [under, waiting, last] = [send(pool), send(pool), send(pool)];
    await eventually(() => upstream.sockets.length === 1);
    waiting.control?.abort();
    upstream.answer = (socket) => socket.write(ok);
    under.control?.abort();
    await over(last);
    expect([under.isOver, waiting.isOver, last.hasEnded]).toEqual([false, false, true]);
  });

  test.for([
    [{ path: '/a b' }, 'a space in the path'],
    [{ path: '/a\r\nX: y' }, 'a line break in the path'],
    [{ path: '' }, 'no path'],
    [{ method: 'GET / HTTP/1.1\r\nX: y' }, 'a line break in the method'],
    [{ headers: ['X-A', 'b\r\nX-C: d'] }, 'a line break in a header'],
    [{ headers: ['X-A', 'b\0'] }, 'a null byte in a header'],
    [{ headers: ['X-A', '\u0100'] }, 'a character beyond Latin-1'],
  ] as const)('that HTTP cannot carry is not sent: %j', async ([request]) => {
    using pool = upstream.poolOf();
    expect(send(pool, request).error?.code).toBe('UPSTREAM_BAD_REQUEST');
    expect(pool.isEmpty).toBe(true);
  });

  test('with a body of unknown length is sent in chunks, one of known length as it is', async () => {
    using pool = upstream.poolOf();
    let text = '';
    upstream.answer = (socket, piece) => {
      text += piece;
      if (/0\r\n\r\n$|five!$/.test(text)) socket.write(ok);
    };
    const unknown = new PassThrough();
    const first = send(pool, { method: 'POST', body: unknown });
    unknown.write('one');
    unknown.end('two');
    await over(first);
    expect(text).toMatch(
      /Transfer-Encoding: chunked\r\n[\s\S]*\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n$/,
    );
    text = '';
    const known = new PassThrough();
    const second = send(pool, { method: 'PUT', body: known, headers: ['content-length', '5'] });
    known.end('five!');
    await over(second);
    expect(text).toMatch(/content-length: 5\r\n[\s\S]*\r\n\r\nfive!$/);
    expect(text).not.toContain('chunked');
    expect(upstream.sockets).toHaveLength(1);
  });

  test('without a body says so where one is expected', async () => {
    using pool = upstream.poolOf();
    const requests: string[] = [];
    upstream.answer = (socket, text) => {
      requests.push(text);
      socket.write(ok);
    };
    await over(send(pool, { method: 'POST' }));
    await over(send(pool, { method: 'DELETE' }));
    expect(requests.map((text) => text.includes('Content-Length: 0\r\n'))).toEqual([true, false]);
  });

  test('that is answered before its body is over gives its connection up', async () => {
    using pool = upstream.poolOf();
    const body = new PassThrough();
    const sent = send(pool, { method: 'POST', body });
    body.write('the beginning');
    expect((await over(sent)).hasEnded).toBe(true);
    expect(pool.isEmpty).toBe(true);
    expect((await over(send(pool))).hasEnded).toBe(true);
  });

  test('whose body fails or breaks off is broken off', async () => {
    using pool = upstream.poolOf();
    upstream.answer = () => {};
    const [failing, breaking] = [new PassThrough(), new PassThrough()];
    const sent = [failing, breaking].map((body) => send(pool, { method: 'POST', body }));
    for (const body of [failing, breaking]) body.write('x');
    await eventually(() => upstream.sockets.length === 2);
    failing.destroy(new Error('too large'));
    breaking.destroy();
    await Promise.all(sent.map(over));
    expect(sent.map(({ error }) => error?.message)).toEqual([
      'too large',
      'The body of the request broke off.',
    ]);
  });
});
