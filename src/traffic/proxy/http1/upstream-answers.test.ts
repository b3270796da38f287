import { type AddressInfo, connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/attacks/proxy-harness.ts';
import { ok, over, send, useUpstream } from '../../../../test/support/upstream-world.ts';

const upstream = useUpstream();

describe('an upstream that does not keep to one answer for each request', () => {
  test('never answers the request that waits for the connection', async () => {
    using pool = upstream.poolOf({ maxConnections: 1 });
    const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
    upstream.answer = (socket) => {
      upstream.answer = (other) => other.write(ok);
      socket.write(ok + forged);
    };
    const [first, second] = [send(pool), send(pool)];
    expect((await over(first)).body).toBe('ok');
    expect((await over(second)).body).toBe('ok');
    expect(upstream.sockets).toHaveLength(2);
  });

  test('loses the idle connection on which it speaks unasked', async () => {
    using pool = upstream.poolOf();
    await over(send(pool));
    const [idle] = upstream.sockets;
    idle?.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');
    await eventually(() => pool.isEmpty);
    expect((await over(send(pool))).body).toBe('ok');
    expect(upstream.sockets).toHaveLength(2);
  });

  test('never answers a request that has not been sent yet', async () => {
    const requests: string[] = [];
    upstream.answer = (socket, text) => {
      requests.push(text);
      socket.write(ok);
    };
    let speak: (text: string) => void = () => {};
    const { port } = upstream.server.address() as AddressInfo;
    using pool = upstream.poolOf({
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
    using pool = upstream.poolOf();
    upstream.answer = (socket) => socket.write('SSH-2.0-OpenSSH\r\n\r\n');
    expect((await over(send(pool))).error?.code).toBe('UPSTREAM_BAD_RESPONSE');
    expect(pool.isEmpty).toBe(true);
  });

  test('fails the request when it closes before the answer is whole', async () => {
    using pool = upstream.poolOf();
    upstream.answer = (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    const { error, body } = await over(send(pool));
    expect({ code: error?.code, body }).toEqual({ code: 'UPSTREAM_CLOSED', body: 'half' });
  });

  test('may end an answer without length by closing', async () => {
    using pool = upstream.poolOf();
    upstream.answer = (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall there is');
    expect(await over(send(pool))).toMatchObject({ hasEnded: true, body: 'all there is' });
  });
});

test('an upstream that sends tiny chunks without end is read once in a turn, with others in between', async () => {
  using pool = upstream.poolOf();
  upstream.answer = (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    socket.write('1\r\nx\r\n'.repeat(300_000));
    socket.write('0\r\n\r\n');
  };
  let turns = 0;
  const readsByTurn: number[] = [];
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const sent = [send(pool), send(pool)];
  for (const one of sent) {
    one.onResponseData = (piece) => {
      one.body += piece.toString('latin1');
      readsByTurn[turns] = (readsByTurn[turns] ?? 0) + 1;
    };
  }
  for (const one of sent) await over(one);
  isOver = true;
  expect(sent.map(({ body }) => body.length)).toEqual([300_000, 300_000]);
  // What is read first has not shown yet how much there is in it.
  expect(Math.max(...readsByTurn.filter(Boolean))).toBeLessThanOrEqual(2);
});
