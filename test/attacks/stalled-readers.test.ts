import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { Exchange } from '../../src/traffic/proxy/exchange.ts';
import {
  eventually,
  head,
  rawClient,
  startProxy,
  startRawUpstream,
  startUpstream,
} from './proxy-harness.ts';

/** Of what one reader leaves unread, the hub keeps no more than this. */
const maxBytes = 1024 * 1024;
/** And in no more pieces, each of which costs some hundred bytes whatever is in it. */
const maxPieces = 2_000;

type CountedSocket = Socket & { _writableState: { getBuffer(): readonly unknown[] } };

/** What waits in the hub for the peer of a socket. */
function unsentOn(socket: Socket): { readonly bytes: number; readonly pieces: number } {
  const { _writableState: state } = socket as CountedSocket;
  return { bytes: socket.writableLength, pieces: state.getBuffer().length };
}

type CountedReadable = Readable & {
  _readableState: { readonly buffer: readonly unknown[]; readonly bufferIndex: number };
};

/** What a stream holds of what nobody has read yet. */
function piecesIn(stream: Readable): number {
  const { buffer, bufferIndex } = (stream as CountedReadable)._readableState;
  return buffer.length - bufferIndex;
}

type Proxy = Awaited<ReturnType<typeof startProxy>>;

function expectBounded(socket: Socket | undefined): void {
  const { bytes, pieces } = unsentOn(socket as Socket);
  expect(bytes).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(maxBytes);
  expect(pieces).toBeLessThan(maxPieces);
}

/** A proxy whose clients take nothing from the first byte on, and what it has sent them. */
async function startProxyOfStalledClients() {
  const proxy = await startProxy();
  const sockets: Socket[] = [];
  proxy.server.on('connection', (socket) => {
    // What is corked stays in the process, as with a client whose side of the connection is full.
    socket.cork();
    sockets.push(socket);
  });
  return Object.assign(proxy, { sockets });
}

/** Sends until the hub reads no more. */
async function sendWithoutEnd(socket: Socket, piece: Buffer): Promise<void> {
  let isRead = true;
  while (isRead) {
    for (let count = 0; count < 50; count += 1) socket.write(piece);
    const before = socket.writableLength;
    await turns(20);
    isRead = socket.writableLength < before || socket.writableLength === 0;
  }
}

/** Sends one piece in each packet, and each only once the one before has been read. */
async function drip(socket: Socket, piece: string, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) {
    socket.write(piece, 'latin1');
    await turns(2);
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const chunkedHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const handshake = head(
  'GET /services/a/',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
);
const switching =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';
const tinyChunks = Buffer.from('1\r\nx\r\n'.repeat(10_000));

describe('a client that reads nothing costs the hub a bounded number of bytes and of pieces', () => {
  test.for([
    ['chunks of one byte', head('GET /services/a/'), chunkedHead, tinyChunks],
    [
      'large pieces',
      head('GET /services/a/'),
      chunkedHead,
      Buffer.from(`fa0\r\n${'x'.repeat(4_000)}\r\n`),
    ],
    [
      'a WebSocket of tiny frames',
      handshake,
      switching,
      Buffer.from('\x81\x00'.repeat(30_000), 'latin1'),
    ],
    [
      'the refusal of a WebSocket in chunks of one byte',
      handshake,
      chunkedHead.replace('200', '403'),
      tinyChunks,
    ],
  ] as const)('%s, sent without end', async ([, request, answer, piece]) => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write(answer);
        void sendWithoutEnd(peer.socket, piece).then(() => {
          isStalled = true;
        });
      });
    });
    let isStalled = false;
    await using proxy = await startProxyOfStalledClients();
    proxy.addService('a', upstream.url);
    await rawClient(proxy.port, request);
    await eventually(() => isStalled);
    expectBounded(proxy.sockets[0]);
  });

  test.for([
    ['chunks of one byte', head('GET /services/a/'), chunkedHead, '1\r\nx\r\n'],
    ['WebSocket frames', handshake, switching, '\x81\x00'],
  ] as const)('%s, one in each packet', async ([, request, answer, piece]) => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write(answer);
        void drip(peer.socket, piece, maxPieces + 1_000).then(() => {
          isOver = true;
        });
      });
    });
    let isOver = false;
    await using proxy = await startProxyOfStalledClients();
    proxy.addService('a', upstream.url);
    await rawClient(proxy.port, request);
    await eventually(() => isOver);
    expectBounded(proxy.sockets[0]);
  });
});

/** The hub's own sides of the connections to an upstream, which take nothing from the first byte on. */
function stallConnectionsTo(port: number) {
  const sockets: Socket[] = [];
  const onSocket = (message: unknown) => {
    const { socket } = message as { readonly socket: Socket };
    socket.once('connect', () => {
      if (socket.remotePort !== port) return;
      socket.cork();
      sockets.push(socket);
    });
  };
  subscribe('net.client.socket', onSocket);
  return { sockets, [Symbol.dispose]: () => void unsubscribe('net.client.socket', onSocket) };
}

describe('an upstream that reads nothing costs the hub a bounded number of bytes and of pieces', () => {
  const upload = head('POST /services/a/', 'Transfer-Encoding: chunked');

  test('chunks of one byte, sent without end', async () => {
    await using upstream = await startRawUpstream(() => {});
    using stalled = stallConnectionsTo(upstream.port);
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, upload);
    await sendWithoutEnd(client.socket, tinyChunks);
    expectBounded(stalled.sockets[0]);
    expect(piecesOnTheWay(proxy)).toBeLessThan(maxPieces);
  });

  test('chunks of one byte, one in each packet', async () => {
    await using upstream = await startRawUpstream(() => {});
    using stalled = stallConnectionsTo(upstream.port);
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, upload);
    await drip(client.socket, '1\r\nx\r\n', maxPieces + 1_000);
    expectBounded(stalled.sockets[0]);
    expect(piecesOnTheWay(proxy)).toBeLessThan(maxPieces);
  });

  test.for([
    [
      'in chunks of one byte',
      'Transfer-Encoding: chunked',
      `${'1\r\nx\r\n'.repeat(400_000)}0\r\n\r\n`,
    ],
    [
      'in large chunks',
      'Transfer-Encoding: chunked',
      `61a80\r\n${'x'.repeat(400_000)}\r\n0\r\n\r\n`,
    ],
    ['of a length', 'Content-Length: 400000', 'x'.repeat(400_000)],
  ] as const)('a body %s arrives once the upstream reads', async ([, framing, body]) => {
    let received = 0;
    await using upstream = await startUpstream(async (req, res) => {
      for await (const piece of req) received += (piece as Buffer).length;
      res.end('taken');
    });
    using stalled = stallConnectionsTo(upstream.port);
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('POST /services/a/', framing));
    client.write(body);
    await eventually(() => (stalled.sockets[0]?.writableLength ?? 0) > 0);
    await turns(50);
    stalled.sockets[0]?.uncork();
    await client.until('taken');
    expect(received).toBe(400_000);
    // The connection is as good as before.
    client.write(head('GET /services/a/', 'Connection: close'));
    await client.closed;
    expect(client.text().match(/HTTP\/1.1 200/g)).toHaveLength(2);
  });

  /** Of the bodies of requests, before they get to the socket of the upstream. */
  function piecesOnTheWay({ liveConnections }: Pick<Proxy, 'liveConnections'>): number {
    const exchanges = [...liveConnections.list()] as Exchange[];
    expect(exchanges).toHaveLength(1);
    return exchanges
      .flatMap(({ req, request: { body } }) => (body === null ? [req] : [req, body]))
      .reduce((sum, stream) => sum + piecesIn(stream), 0);
  }
});

describe('a client that asks for much before it reads', () => {
  const bytes = 256 * 1024;
  const large = `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`;

  test('costs one answer at a time', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => peer.text().endsWith('\r\n\r\n') && peer.write(large));
    });
    await using proxy = await startProxyOfStalledClients();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/').repeat(20));
    await eventually(() => proxy.sockets[0]?.writableNeedDrain === true);
    await turns(50);
    expect(proxy.liveConnections.size).toBe(1);
    expect(upstream.peers).toHaveLength(1);
    // Each gets its turn.
    proxy.sockets[0]?.uncork();
    await eventually(() => client.bytes().length > 20 * bytes);
  });

  test('is cut off when that is too much', async () => {
    await using upstream = await startRawUpstream(() => {});
    await using proxy = await startProxyOfStalledClients();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/').repeat(100));
    await client.closed;
    expect(proxy.liveConnections.size).toBe(0);
  });
});
