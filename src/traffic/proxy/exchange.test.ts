import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import {
  eventually,
  head,
  rawClient,
  rawRequest,
  startProxy,
  startRawUpstream,
  startUpstream,
} from '../../../test/attacks/proxy-harness.ts';

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, index) => index));

/** Splits a raw response; the body as bytes. */
function bodyOf(response: Buffer): Buffer {
  return response.subarray(response.indexOf('\r\n\r\n') + 4);
}

describe('a short answer, which goes out together with its head', () => {
  test.each([0, 1, 256, 12_288, 12_289, 70_000])(
    'of %i bytes arrives byte for byte, after a head with its length',
    async (length) => {
      const body = Buffer.alloc(length, everyByte);
      await using upstream = await startUpstream((_req, res) => {
        res.writeHead(200, { 'content-length': length, 'content-type': 'image/png' }).end(body);
      });
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      const client = await rawClient(proxy.port, head('GET /services/a/', 'Connection: close'));
      await client.closed;
      expect(client.text()).toContain(`content-length: ${length}\r\n`);
      expect(bodyOf(client.bytes()).equals(body)).toBe(true);
    },
  );

  test('whose length is announced in two pieces of body arrives in whole', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => {
        peer.write('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nfour');
        void eventually(() => handedOffFirst).then(() => peer.write('more'));
      });
    });
    let handedOffFirst = false;
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, head('GET /services/a/', 'Connection: close'));
    await client.until('four');
    handedOffFirst = true;
    await client.closed;
    expect(bodyOf(client.bytes()).toString()).toBe('fourmore');
  });

  test('never carries bytes beyond its announced length, nor do they reach the next request', async () => {
    let asked = 0;
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => {
        if (!peer.text().endsWith('\r\n\r\n')) return;
        asked += 1;
        const surplus = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
        peer.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${asked}!${surplus}`);
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    for (const expected of ['1!', '2!']) {
      const response = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
      expect(response.endsWith(`\r\n\r\n${expected}`)).toBe(true);
      expect(response).not.toContain('forged');
    }
  });

  test('to HEAD has its length and no body', async () => {
    await using upstream = await startUpstream((_req, res) => {
      res.writeHead(200, { 'content-length': 5 }).end();
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const response = await rawRequest(proxy.port, head('HEAD /services/a/', 'Connection: close'));
    expect(response).toContain('content-length: 5\r\n');
    expect(response.endsWith('\r\n\r\n')).toBe(true);
  });

  test('keeps its place among pipelined requests', async () => {
    await using upstream = await startUpstream((req, res) => {
      const body = `<${req.url}>`;
      res.writeHead(200, { 'content-length': body.length });
      // The first is the last to be answered.
      if (req.url === '/services/a/1') setTimeout(() => res.end(body), 50);
      else res.end(body);
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const response = await rawRequest(
      proxy.port,
      head('GET /services/a/1') +
        head('GET /services/a/2') +
        head('GET /services/a/3', 'Connection: close'),
    );
    expect(response.match(/<[^>]*>/g)).toEqual([
      '</services/a/1>',
      '</services/a/2>',
      '</services/a/3>',
    ]);
  });
});

describe('bodies larger than every buffer on the way', () => {
  const mebibyte = 1024 * 1024;
  const length = 12 * mebibyte;

  /** A body in which no two places look alike, nor any of another's: a piece in the wrong place shows. */
  function bodyFrom(client: number): Buffer {
    const body = Buffer.alloc(length);
    for (let at = 0; at < length; at += 4) {
      body.writeUInt32LE(Math.imul(at + client * length, 0x9e3779b1) >>> 0, at);
    }
    return body;
  }

  test.each([
    ['of announced length, taken at once', { 'content-length': length }, 0],
    ['of announced length, taken slowly', { 'content-length': length }, 64],
    ['in chunks, taken slowly', { 'transfer-encoding': 'chunked' }, 64],
  ])(
    '%s, arrive byte for byte both ways, beside others and those who leave',
    async (_name, framing, pauseEvery) => {
      await using upstream = await startUpstream((req, res) => {
        const { 'content-length': length } = req.headers;
        res.writeHead(200, length === undefined ? {} : { 'content-length': length });
        req.pipe(res);
      });
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);

      const exchange = async (client: number, leaves: boolean) => {
        const sent = bodyFrom(client);
        const outgoing = request(`http://127.0.0.1:${proxy.port}/services/a/`, {
          method: 'POST',
          headers: framing,
        });
        Readable.from(piecesOf(sent, 100_000)).pipe(outgoing);
        outgoing.on('error', () => {});
        const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
        const received: Buffer[] = [];
        for await (const piece of answer as AsyncIterable<Buffer>) {
          received.push(piece);
          if (leaves && received.length === 20) break;
          // So that the pieces behind it fill every buffer on the way.
          if (pauseEvery > 0 && received.length % pauseEvery === 0) {
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        }
        if (leaves) outgoing.destroy();
        const arrived = Buffer.concat(received);
        return (
          arrived.equals(sent.subarray(0, arrived.length)) && (leaves || arrived.length === length)
        );
      };
      const clients = [1, 2, 3, 4, 5, 6].map((client) => exchange(client, client % 2 === 0));
      expect(await Promise.all(clients)).toEqual(clients.map(() => true));
    },
  );

  function* piecesOf(body: Buffer, bytes: number): Generator<Buffer> {
    for (let at = 0; at < body.length; at += bytes) yield body.subarray(at, at + bytes);
  }
});
