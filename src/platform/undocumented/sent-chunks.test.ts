import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { SentChunks } from './sent-chunks.ts';

const pieceOf = (bytes: number) => Buffer.from(new ArrayBuffer(bytes)).fill('p');
const isGivenBack = (chunk: Buffer) => (chunk.buffer as ArrayBuffer).detached;

test('chunks are given back in the order in which they were sent', () => {
  const chunks = new SentChunks(() => {});
  const [first, second] = [pieceOf(65_536), pieceOf(4_096)];
  const sentFirst = chunks.sending(first);
  const sentSecond = chunks.sending(second);
  expect([isGivenBack(first), isGivenBack(second)]).toEqual([false, false]);
  sentFirst(null);
  expect([isGivenBack(first), isGivenBack(second)]).toEqual([true, false]);
  sentSecond();
  expect(isGivenBack(second)).toBe(true);
});

test('a chunk whose writing failed is left alone, and the next one is still told from it', () => {
  const chunks = new SentChunks(() => {});
  const [first, second] = [pieceOf(65_536), pieceOf(65_536)];
  const sentFirst = chunks.sending(first);
  const sentSecond = chunks.sending(second);
  sentFirst(new Error('the client has left'));
  sentSecond(null);
  expect([isGivenBack(first), isGivenBack(second)]).toEqual([false, true]);
});

test('what is small or shares its memory is not touched', () => {
  const chunks = new SentChunks(() => {});
  const shared = pieceOf(65_536);
  const small = pieceOf(4_095);
  const pooled = Buffer.from('from the pool');
  for (const chunk of [shared.subarray(0, 65_535), shared.subarray(1), small, pooled]) {
    chunks.sending(chunk)(null);
  }
  expect([shared, small, pooled].map(isGivenBack)).toEqual([false, false, false]);
});

test('as many chunks as may be under way are too many, and it is told when all are sent', () => {
  let timesAllSent = 0;
  const chunks = new SentChunks(() => {
    timesAllSent += 1;
  });
  const callbacks = Array.from({ length: 256 }, () => {
    expect(chunks.isFull).toBe(false);
    return chunks.sending(Buffer.from('x'));
  });
  expect(chunks.isFull).toBe(true);
  for (const sent of callbacks) {
    expect(timesAllSent).toBe(0);
    sent(null);
  }
  expect([chunks.isFull, timesAllSent]).toEqual([false, 1]);
});

test('a socket that calls back gives memory back once the other side can have it', async () => {
  await using pair = await connectedPair();
  const sent = new SentChunks(() => {});
  const borrowedChunk = pieceOf(65_536);
  const chunks = Array.from({ length: 200 }, () => SentChunks.copyOf(borrowedChunk));
  for (const chunk of chunks) pair.near.write(chunk, sent.sending(chunk));
  const called = new Promise<void>((resolve) => {
    pair.near.write('a text', () => resolve());
  });
  let received = '';
  pair.far.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  await called;
  expect(chunks.every(isGivenBack)).toBe(true);
  expect(isGivenBack(borrowedChunk)).toBe(false);
  pair.near.end();
  await once(pair.far, 'end');
  expect(received).toBe(`${'p'.repeat(200 * 65_536)}a text`);
});

test('a copy of a small chunk takes no memory of its own', () => {
  const copy = SentChunks.copyOf(Buffer.from('data: 1\n\n'));
  expect(copy.toString()).toBe('data: 1\n\n');
  expect(copy.buffer.byteLength).toBeGreaterThan(copy.byteLength);
});

interface SocketPair extends AsyncDisposable {
  readonly near: Socket;
  readonly far: Socket;
}

async function connectedPair(): Promise<SocketPair> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number };
  const near = connect(port, '127.0.0.1');
  const [far] = (await once(server, 'connection')) as [Socket];
  return {
    near,
    far,
    async [Symbol.asyncDispose]() {
      near.destroy();
      far.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
