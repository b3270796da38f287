import { describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/attacks/proxy-harness.ts';
import { ok, over, send, useUpstream } from '../../../../test/support/upstream-world.ts';

const upstream = useUpstream();

describe('a connection is kept', () => {
  test.for([
    ['as long as the hub says', '', 4_000],
    ['as long as the upstream says, less a margin', 'Keep-Alive: timeout=3\r\n', 2_000],
    ['no longer than the hub says', 'Keep-Alive: timeout=60\r\n', 4_000],
  ] as const)('%s', async ([, header, idleLimitMs]) => {
    using pool = upstream.poolOf();
    upstream.answer = (socket) => socket.write(ok.replace('\r\n\r\n', `\r\n${header}\r\n`));
    await over(send(pool));
    upstream.nowMs += idleLimitMs - 1;
    pool.checkDeadlines(upstream.nowMs);
    expect(pool.isEmpty).toBe(false);
    upstream.nowMs += 1;
    pool.checkDeadlines(upstream.nowMs);
    expect(pool.isEmpty).toBe(true);
  });

  test.for(['Connection: close\r\n', 'Keep-Alive: timeout=1\r\n'])(
    'not after %j',
    async (header) => {
      using pool = upstream.poolOf();
      upstream.answer = (socket) => socket.write(ok.replace('\r\n\r\n', `\r\n${header}\r\n`));
      await over(send(pool));
      expect(pool.isEmpty).toBe(true);
    },
  );
});

describe('a timeout', () => {
  test('ends a request whose answer does not begin, or does not go on', async () => {
    using pool = upstream.poolOf({ timeouts: { headersMs: 100, bodyMs: 300 } });
    upstream.answer = (socket, text) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      if (text.startsWith('GET /half')) socket.write('Content-Length: 9\r\n\r\nhalf');
    };
    const silent = send(pool);
    const halfway = send(pool, { path: '/half' });
    await eventually(() => upstream.sockets.length === 2);
    await eventually(() => halfway.body === 'half');
    upstream.nowMs += 100;
    pool.checkDeadlines(upstream.nowMs);
    expect([silent.error?.code, halfway.error]).toEqual(['UPSTREAM_HEADERS_TIMEOUT', undefined]);
    upstream.nowMs += 200;
    pool.checkDeadlines(upstream.nowMs);
    expect(halfway.error?.code).toBe('UPSTREAM_BODY_TIMEOUT');
  });

  test('does not end an answer that the client has not taken', async () => {
    using pool = upstream.poolOf();
    upstream.answer = (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    const sent = send(pool);
    sent.onHead = () => sent.control?.pause();
    await eventually(() => sent.body === 'half');
    upstream.nowMs += 1_000;
    pool.checkDeadlines(upstream.nowMs);
    expect(sent.error).toBeUndefined();
    sent.control?.resume();
    upstream.nowMs += 100;
    pool.checkDeadlines(upstream.nowMs);
    expect(sent.error?.code).toBe('UPSTREAM_BODY_TIMEOUT');
  });

  test('ends the wait for a connection', async () => {
    using pool = upstream.poolOf();
    const sent = send(pool);
    upstream.nowMs += 100;
    pool.checkDeadlines(upstream.nowMs);
    expect(sent.error?.code).toBe('UPSTREAM_CONNECT_TIMEOUT');
  });
});
