import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, createServer, get, type IncomingMessage, type Server } from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createPlainServer,
  type Socket,
} from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import {
  afterEarlierAnswers,
  interceptConnections,
  prepareReadingAgain,
  responseOn,
  startReading,
  stopReading,
} from './node-http.ts';
import { sharedReadBuffer } from './shared-read-buffer.ts';

/**
 * What this folder uses is promised by nobody. These are the versions for which it was read and tried. With
 * another one: read the source of what is used here again, then change the version.
 */
const readVersions = { node: '24', 'http-proxy-3': '2.0' };

test('Node.js and http-proxy-3 are the versions whose source was read', () => {
  const [node] = process.versions.node.split('.');
  const versionOf = (name: string) => {
    const file = join(import.meta.dirname, '../../../node_modules', name, 'package.json');
    const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string };
    return version.split('.').slice(0, 2).join('.');
  };
  expect({
    node,
    'http-proxy-3': versionOf('http-proxy-3'),
  }).toEqual(readVersions);
});

async function listening(server: Server): Promise<AsyncDisposable & { readonly origin: string }> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('a connection that is not to be read stays so, whatever asks for more, until it is', async () => {
  const { promise: arrived, resolve } = Promise.withResolvers<IncomingMessage>();
  const server = createServer((req, res) => {
    res.write('x');
    req.on('data', () => stopReading(req.socket));
    req.once('end', () => res.end('whole'));
    resolve(req);
  });
  await using running = await listening(server);
  const { port } = new URL(running.origin);
  const client = connect(Number(port), '127.0.0.1');
  client.write('POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 200005\r\n\r\nfirst');
  const { socket } = await arrived;
  while (!socket.isPaused()) await nextTurn();
  client.write('x'.repeat(200_000));
  const readBytes = socket.bytesRead;
  for (let turn = 0; turn < 20; turn += 1) {
    // As when the client has taken what was sent.
    socket.emit('drain');
    await nextTurn();
  }
  expect(socket.bytesRead - readBytes).toBe(0);

  let text = '';
  client.on('data', (piece: Buffer) => {
    text += piece.toString();
  });
  while (!text.includes('whole')) {
    startReading(socket);
    await nextTurn();
  }
  client.destroy();
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

test('the response on a socket is the one under way, and none between two requests', async () => {
  const found: boolean[] = [];
  let socket: Socket | undefined;
  const server = createServer((req, res) => {
    socket = req.socket;
    found.push(responseOn(req.socket) === res);
    res.end('answer');
  });
  await using running = await listening(server);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let request = 0; request < 2; request += 1) {
    const [answer] = (await once(get(running.origin, { agent }), 'response')) as [IncomingMessage];
    await buffer(answer);
    found.push(socket !== undefined && responseOn(socket) === undefined);
  }
  agent.destroy();
  expect(found).toEqual([true, true, true, true]);
});

test('Node has one listener for connections, which parses what it is given and nothing else', async () => {
  const server = createServer((_req, res) => void res.end('answer'));
  expect(server.listenerCount('connection')).toBe(1);
  let isOpen = false;
  const serve = interceptConnections(server, (socket) => {
    if (isOpen) serve(socket);
    else socket.destroy();
  });
  await using running = await listening(server);
  await expect(fetch(running.origin)).rejects.toThrow('fetch failed');
  isOpen = true;
  expect(await (await fetch(running.origin)).text()).toBe('answer');
});

/** What a connection is answered, with two upgrades and a request behind each in one packet. */
async function answersBehindUpgrades(server: Server): Promise<string> {
  server.on('request', (req, res) => void res.end(`(${req.url})`));
  await using running = await listening(server);
  const client = connect(Number(new URL(running.origin).port), '127.0.0.1');
  const upgrade = 'GET /upgrade HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
  client.write(`${upgrade}GET /behind HTTP/1.1\r\nHost: h\r\n\r\n`.repeat(12));
  let received = '';
  client.setEncoding('latin1').on('data', (text: string) => {
    if (received === '') client.write('GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
    received += text;
  });
  await once(client, 'close');
  return received.match(/\([^)]*\)/g)?.join('') ?? '';
}

test('Node loses what follows an upgrade that it is told not to take, and reads it once it is given back', async () => {
  const lossy = createServer({ shouldUpgradeCallback: () => false });
  expect(await answersBehindUpgrades(lossy)).toBe('(/upgrade)(/last)');

  const server = createServer();
  const readAgain = prepareReadingAgain(server);
  let listeners = 0;
  server.on('upgrade', (req, socket, head) => {
    afterEarlierAnswers(socket as Socket, () => {
      readAgain(req, socket as Socket, head);
      const names = socket.eventNames();
      listeners = names.reduce((sum, name) => sum + socket.listenerCount(name), 0);
    });
  });
  expect(await answersBehindUpgrades(server)).toBe(`${'(/upgrade)(/behind)'.repeat(12)}(/last)`);
  expect(listeners).toBeLessThan(20);
});

test('sockets that read into one buffer have it to themselves until their callback returns', async () => {
  const senders = Array.from({ length: 20 }, (_, index) =>
    Buffer.alloc(200_000 + index, index + 1),
  );
  const server = createPlainServer((socket) => {
    socket.once('data', (asked) => socket.end(senders[Number(asked.toString())] ?? ''));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const received = await Promise.all(
    senders.map(async (_sent, index) => {
      const pieces: Buffer[] = [];
      const socket = connect({
        port,
        host: '127.0.0.1',
        onread: {
          buffer: sharedReadBuffer,
          callback(size) {
            pieces.push(Buffer.from(sharedReadBuffer.subarray(0, size)));
            return true;
          },
        },
      });
      socket.write(String(index));
      await once(socket, 'close');
      return Buffer.concat(pieces);
    }),
  );
  server.close();
  expect(received.map((bytes, index) => bytes.equals(senders[index] ?? Buffer.alloc(0)))).toEqual(
    senders.map(() => true),
  );
});
