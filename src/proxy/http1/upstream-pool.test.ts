import { once } from 'node:events';
import {
  type AddressInfo,
  connect,
  createServer,
  type OnReadOpts,
  type Server,
  type Socket,
} from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/attacks/proxy-harness.ts';
import type { UpstreamTimeouts } from './upstream-connection.ts';
import { UpstreamPool } from './upstream-pool.ts';
import type { ExchangeControl, UpstreamHandler, UpstreamRequest } from './upstream-request.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** What an upstream does with each piece of a request. */
let answer: (socket: Socket, text: string) => void;
let server: Server;
let sockets: Socket[];
let nowMs: number;

beforeEach(async () => {
  sockets = [];
  nowMs = 0;
  answer = (socket) => socket.write(ok);
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('data', (piece) => answer(socket, piece.toString('latin1'))).on('error', () => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, 'close');
});

type ReadInto = OnReadOpts & { readonly buffer: Buffer };

function poolOf(
  options: {
    maxConnections?: number;
    timeouts?: Partial<UpstreamTimeouts>;
    open?: (onread: ReadInto) => Socket;
  } = {},
) {
  const { port } = server.address() as AddressInfo;
  const timeouts = { connectMs: 100, headersMs: 100, bodyMs: 100, idleMs: 4_000 };
  const pool = new UpstreamPool({
    open: (onread) =>
      options.open?.(onread as ReadInto) ?? connect({ port, host: '127.0.0.1', onread }),
    openEvent: 'connect',
    host: 'upstream.test',
    maxConnections: options.maxConnections ?? 8,
    timeouts: { ...timeouts, ...options.timeouts },
    now: () => nowMs,
  });
  return Object.assign(pool, { [Symbol.dispose]: () => pool.destroy() });
}

/** A request, and what has become of it. */
class Sent implements UpstreamHandler {
  control: ExchangeControl | undefined;
  status = 0;
  body = '';
  hasEnded = false;
  error: (Error & { code?: string }) | undefined;
  onHead: () => void = () => {};

  onRequestStart(control: ExchangeControl) {
    this.control = control;
  }
  onResponseStarted() {}
  onResponseStart(status: number) {
    this.status = status;
    this.onHead();
  }
  onResponseData(piece: Buffer) {
    this.body += piece.toString('latin1');
  }
  onResponseEnd() {
    this.hasEnded = true;
  }
  onResponseError(error: Error) {
    this.error = error;
  }

  get isOver(): boolean {
    return this.hasEnded || this.error !== undefined;
  }
}

function send(pool: UpstreamPool, request: Partial<UpstreamRequest> = {}): Sent {
  const sent = new Sent();
  pool.dispatch({ method: 'GET', path: '/', headers: [], body: null, ...request }, sent);
  return sent;
}

async function over(sent: Sent): Promise<Sent> {
  await eventually(() => sent.isOver);
  return sent;
}

describe('a pool', () => {
  test('sends one request after the other on one connection', async () => {
    using pool = poolOf();
    const requests: string[] = [];
    answer = (socket, text) => {
      requests.push(text);
      socket.write(ok);
    };
    for (const path of ['/a?b', '/\xe9']) {
      const { status, body } = await over(send(pool, { path, headers: ['X-A', '1\xe9'] }));
      expect({ status, body }).toEqual({ status: 200, body: 'ok' });
    }
    expect(sockets).toHaveLength(1);
    const rest = 'X-A: 1\xe9\r\nHost: upstream.test\r\nConnection: keep-alive\r\n\r\n';
    expect(requests).toEqual([`GET /a?b HTTP/1.1\r\n${rest}`, `GET /\xe9 HTTP/1.1\r\n${rest}`]);
  });

  test('sends the headers that many requests share after those of each, and refuses what breaks the framing', async () => {
    using pool = poolOf();
    const requests: string[] = [];
    answer = (socket, text) => {
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
    using pool = poolOf({ maxConnections: 2 });
    const waiting: Socket[] = [];
    answer = (socket) => waiting.push(socket);
    const all = Array.from({ length: 4 }, () => send(pool));
    expect(pool.isFull).toBe(true);
    await eventually(() => waiting.length === 2);
    for (let round = 0; round < 4; round += 1) {
      await eventually(() => waiting.length > 0);
      waiting.shift()?.write(ok);
    }
    await Promise.all(all.map(over));
    expect(all.every(({ hasEnded }) => hasEnded)).toBe(true);
    expect(sockets).toHaveLength(2);
    expect(pool.isFull).toBe(false);
  });

  test('that is closed answers what it has and keeps no connection', async () => {
    using pool = poolOf({ maxConnections: 1 });
    const [under, waiting] = [send(pool), send(pool)];
    pool.close();
    await over(under);
    await over(waiting);
    expect([under.hasEnded, waiting.hasEnded]).toEqual([true, true]);
    await eventually(() => pool.isEmpty);
    expect(send(pool).error?.code).toBe('UPSTREAM_GONE');
  });

  test('that is destroyed breaks off what it has', async () => {
    using pool = poolOf({ maxConnections: 1 });
    answer = () => {};
    const [under, waiting] = [send(pool), send(pool)];
    await eventually(() => sockets.length === 1);
    pool.destroy();
    expect([under.error?.code, waiting.error?.code]).toEqual(['UPSTREAM_GONE', 'UPSTREAM_GONE']);
    expect(pool.isEmpty).toBe(true);
  });

  test('tells each request that nothing listens, and connects again for the next', async () => {
    using pool = poolOf();
    const { port } = server.address() as AddressInfo;
    server.close();
    const failed = await Promise.all([over(send(pool)), over(send(pool))]);
    expect(failed.map(({ error }) => error?.code)).toEqual(['ECONNREFUSED', 'ECONNREFUSED']);
    await once(server.listen(port, '127.0.0.1'), 'listening');
    expect((await over(send(pool))).hasEnded).toBe(true);
  });
});

describe('an upstream that does not keep to one answer for each request', () => {
  test('never answers the request that waits for the connection', async () => {
    using pool = poolOf({ maxConnections: 1 });
    const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
    answer = (socket) => {
      answer = (other) => other.write(ok);
      socket.write(ok + forged);
    };
    const [first, second] = [send(pool), send(pool)];
    expect((await over(first)).body).toBe('ok');
    expect((await over(second)).body).toBe('ok');
    expect(sockets).toHaveLength(2);
  });

  test('loses the idle connection on which it speaks unasked', async () => {
    using pool = poolOf();
    await over(send(pool));
    const [idle] = sockets;
    idle?.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');
    await eventually(() => pool.isEmpty);
    expect((await over(send(pool))).body).toBe('ok');
    expect(sockets).toHaveLength(2);
  });

  test('never answers a request that has not been sent yet', async () => {
    const requests: string[] = [];
    answer = (socket, text) => {
      requests.push(text);
      socket.write(ok);
    };
    let speak: (text: string) => void = () => {};
    const { port } = server.address() as AddressInfo;
    using pool = poolOf({
      open: (onread) => {
        speak = (text) => onread.callback(onread.buffer.write(text, 'latin1'), onread.buffer);
        return connect({ port, host: '127.0.0.1', onread });
      },
    });
    await over(send(pool));
    // What is read in the turn in which the request was handed over came before it was sent.
    const sent = send(pool, { path: '/second' });
    speak('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');
    expect({ code: sent.error?.code, body: sent.body }).toEqual({
      code: 'UPSTREAM_CLOSED',
      body: '',
    });
    expect((await over(send(pool, { path: '/third' }))).body).toBe('ok');
    expect(requests.map((text) => text.split(' ')[1])).toEqual(['/', '/third']);
  });

  test('fails the request when its answer is none', async () => {
    using pool = poolOf();
    answer = (socket) => socket.write('SSH-2.0-OpenSSH\r\n\r\n');
    expect((await over(send(pool))).error?.code).toBe('UPSTREAM_BAD_RESPONSE');
    expect(pool.isEmpty).toBe(true);
  });

  test('fails the request when it closes before the answer is whole', async () => {
    using pool = poolOf();
    answer = (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    const { error, body } = await over(send(pool));
    expect({ code: error?.code, body }).toEqual({ code: 'UPSTREAM_CLOSED', body: 'half' });
  });

  test('may end an answer without length by closing', async () => {
    using pool = poolOf();
    answer = (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall there is');
    expect(await over(send(pool))).toMatchObject({ hasEnded: true, body: 'all there is' });
  });
});

test('a connection that closes under a request takes the idle ones along, as after a restart', async () => {
  using pool = poolOf();
  await Promise.all([over(send(pool)), over(send(pool)), over(send(pool))]);
  expect(sockets).toHaveLength(3);
  answer = (socket) => socket.destroy();
  expect((await over(send(pool))).error).toBeDefined();
  expect(pool.isEmpty).toBe(true);
});

test('a request for a fresh connection takes none that is idle or freed', async () => {
  using pool = poolOf({ maxConnections: 2 });
  const answering: string[] = [];
  answer = (socket, text) => {
    answering.push(`${sockets.indexOf(socket)} ${text.split(' ')[1]}`);
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

describe('a connection is kept', () => {
  test.for([
    ['as long as the hub says', '', 4_000],
    ['as long as the upstream says, less a margin', 'Keep-Alive: timeout=3\r\n', 2_000],
    ['no longer than the hub says', 'Keep-Alive: timeout=60\r\n', 4_000],
  ] as const)('%s', async ([, header, keptMs]) => {
    using pool = poolOf();
    answer = (socket) => socket.write(ok.replace('\r\n\r\n', `\r\n${header}\r\n`));
    await over(send(pool));
    nowMs += keptMs - 1;
    pool.checkDeadlines(nowMs);
    expect(pool.isEmpty).toBe(false);
    nowMs += 1;
    pool.checkDeadlines(nowMs);
    expect(pool.isEmpty).toBe(true);
  });

  test.for(['Connection: close\r\n', 'Keep-Alive: timeout=1\r\n'])(
    'not after %j',
    async (header) => {
      using pool = poolOf();
      answer = (socket) => socket.write(ok.replace('\r\n\r\n', `\r\n${header}\r\n`));
      await over(send(pool));
      expect(pool.isEmpty).toBe(true);
    },
  );
});

describe('a timeout', () => {
  test('ends a request whose answer does not begin, or does not go on', async () => {
    using pool = poolOf({ timeouts: { headersMs: 100, bodyMs: 300 } });
    answer = (socket, text) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      if (text.startsWith('GET /half')) socket.write('Content-Length: 9\r\n\r\nhalf');
    };
    const silent = send(pool);
    const halfway = send(pool, { path: '/half' });
    await eventually(() => sockets.length === 2);
    await eventually(() => halfway.body === 'half');
    nowMs += 100;
    pool.checkDeadlines(nowMs);
    expect([silent.error?.code, halfway.error]).toEqual(['UPSTREAM_HEADERS_TIMEOUT', undefined]);
    nowMs += 200;
    pool.checkDeadlines(nowMs);
    expect(halfway.error?.code).toBe('UPSTREAM_BODY_TIMEOUT');
  });

  test('does not end an answer that the client has not taken', async () => {
    using pool = poolOf();
    answer = (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    const sent = send(pool);
    sent.onHead = () => sent.control?.pause();
    await eventually(() => sent.body === 'half');
    nowMs += 1_000;
    pool.checkDeadlines(nowMs);
    expect(sent.error).toBeUndefined();
    sent.control?.resume();
    nowMs += 100;
    pool.checkDeadlines(nowMs);
    expect(sent.error?.code).toBe('UPSTREAM_BODY_TIMEOUT');
  });

  test('ends the wait for a connection', async () => {
    using pool = poolOf();
    const sent = send(pool);
    nowMs += 100;
    pool.checkDeadlines(nowMs);
    expect(sent.error?.code).toBe('UPSTREAM_CONNECT_TIMEOUT');
  });
});

describe('a request', () => {
  test('that is given up takes its connection along, or its place in the queue', async () => {
    using pool = poolOf({ maxConnections: 1 });
    answer = () => {};
    const [under, waiting, last] = [send(pool), send(pool), send(pool)];
    await eventually(() => sockets.length === 1);
    waiting.control?.abort();
    answer = (socket) => socket.write(ok);
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
    using pool = poolOf();
    expect(send(pool, request).error?.code).toBe('UPSTREAM_BAD_REQUEST');
    expect(pool.isEmpty).toBe(true);
  });

  test('with a body of unknown length is sent in chunks, one of known length as it is', async () => {
    using pool = poolOf();
    let text = '';
    answer = (socket, piece) => {
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
    expect(sockets).toHaveLength(1);
  });

  test('without a body says so where one is expected', async () => {
    using pool = poolOf();
    const requests: string[] = [];
    answer = (socket, text) => {
      requests.push(text);
      socket.write(ok);
    };
    await over(send(pool, { method: 'POST' }));
    await over(send(pool, { method: 'DELETE' }));
    expect(requests.map((text) => text.includes('Content-Length: 0\r\n'))).toEqual([true, false]);
  });

  test('that is answered before its body is over gives its connection up', async () => {
    using pool = poolOf();
    const body = new PassThrough();
    const sent = send(pool, { method: 'POST', body });
    body.write('the beginning');
    expect((await over(sent)).hasEnded).toBe(true);
    expect(pool.isEmpty).toBe(true);
    expect((await over(send(pool))).hasEnded).toBe(true);
  });

  test('whose body fails or breaks off is broken off', async () => {
    using pool = poolOf();
    answer = () => {};
    const [failing, breaking] = [new PassThrough(), new PassThrough()];
    const sent = [failing, breaking].map((body) => send(pool, { method: 'POST', body }));
    for (const body of [failing, breaking]) body.write('x');
    await eventually(() => sockets.length === 2);
    failing.destroy(new Error('too large'));
    breaking.destroy();
    await Promise.all(sent.map(over));
    expect(sent.map(({ error }) => error?.message)).toEqual([
      'too large',
      'The body of the request broke off.',
    ]);
  });
});
