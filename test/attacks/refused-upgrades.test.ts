import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, head, rawClient, startProxy, startUpstream } from './proxy-harness.ts';
import { placeNames, startPlaces, statuses } from './served-places.ts';

let world: Awaited<ReturnType<typeof startPlaces>>;
beforeAll(async () => {
  world = await startPlaces();
});
afterAll(() => world[Symbol.asyncDispose]());

const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
const version = 'Sec-WebSocket-Version: 13';
/** Requests to upgrade that are no opening handshake: method, headers and body. */
const refused: readonly (readonly [string, string, readonly string[], string])[] = [
  ['h2c', 'GET', ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'], ''],
  ['TLS/1.0', 'GET', ['Upgrade: TLS/1.0'], ''],
  ['two protocols', 'GET', ['Upgrade: websocket, h2c', version, key], ''],
  [
    'a WebSocket of another version',
    'GET',
    ['Upgrade: websocket', key, 'Sec-WebSocket-Version: 8'],
    '',
  ],
  ['a WebSocket without a key', 'GET', ['Upgrade: websocket', version], ''],
  ['a WebSocket by POST', 'POST', ['Upgrade: websocket', version, key], ''],
  [
    'a WebSocket with a body',
    'GET',
    ['Upgrade: websocket', version, key, 'Content-Length: 5'],
    'hello',
  ],
  ['h2c with a body', 'POST', ['Upgrade: h2c', 'Content-Length: 5'], 'hello'],
  [
    'h2c with a chunked body',
    'POST',
    ['Upgrade: h2c', 'Transfer-Encoding: chunked'],
    '5\r\nhello\r\n0\r\n\r\n',
  ],
];

describe.for(placeNames)('at %s', (name) => {
  const connect = (text: string) => rawClient(world.places[name].port, text);
  const request = (method: string, mark: string, ...headers: string[]) =>
    world.requestAt(name, method, mark, ...headers);
  async function statusOfPlain(method: string, headers: readonly string[], body: string) {
    const plain = headers.filter((line) => !/^(?:upgrade|http2-settings|sec-)/i.test(line));
    return world.statusAlone(name, method, plain, body);
  }

  test.for(refused)(
    '%s is a plain request, whose connection ends with its answer',
    async ([, method, headers, body]) => {
      const status = await statusOfPlain(method, headers, body);
      const client = await connect(
        `${request(method, 'a', 'Connection: Upgrade', ...headers)}${body}GET ${world.places[name].path}b HTTP/1.1\r\nX-Rest: `,
      );
      await client.until(/^connection: close\r\n/im);
      client.write(request('GET', 'smuggled'));
      await client.closed;
      expect(statuses(client.text())).toEqual([status]);
    },
  );

  test.for(refused)(
    'what comes in one packet with %s is answered in its turn',
    async ([, method, headers, body]) => {
      const status = await statusOfPlain(method, headers, body);
      const next = await statusOfPlain('GET', [], '');
      const client = await connect(
        request(method, 'a', 'Connection: Upgrade', ...headers) +
          body +
          request('GET', 'b') +
          request('DELETE', 'c'),
      );
      await client.closed;
      const third = await statusOfPlain('DELETE', [], '');
      expect(statuses(client.text())).toEqual([status, next, third]);
    },
  );

  test('a broken chunk behind a refused upgrade is 400 at once', async () => {
    const headers = ['Connection: Upgrade', 'Upgrade: h2c', 'Transfer-Encoding: chunked'];
    const client = await connect(`${request('POST', 'a', ...headers)}ZZ\r\n`);
    await client.closed;
    expect(statuses(client.text())).toEqual([400]);
  });

  test('a body that comes later is still that of the request', async () => {
    const headers = ['Upgrade: h2c', 'Content-Length: 5'];
    const status = await statusOfPlain('POST', headers, 'hello');
    const client = await connect(request('POST', 'a', 'Connection: Upgrade', ...headers));
    client.write('hello');
    await client.closed;
    expect(statuses(client.text())).toEqual([status]);
  });
});

describe('behind a request that is not answered yet', () => {
  /** An application that answers `/slow` when it may. */
  async function startSlow() {
    const mayAnswer = Promise.withResolvers<void>();
    const upstream = await startUpstream(
      async (req, res) => {
        if (req.url?.endsWith('/slow') === true) await mayAnswer.promise;
        res.end(`this is ${req.url}`);
      },
      (server) => {
        server.on('upgrade', (_req, socket) => {
          socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nno socket');
        });
      },
    );
    return { ...upstream, answer: mayAnswer.resolve };
  }

  test.for([
    ['a refused upgrade', head('GET /services/a/x', 'Connection: Upgrade', 'Upgrade: h2c'), 200],
    [
      'a WebSocket',
      head('GET /services/a/x', 'Connection: Upgrade', 'Upgrade: websocket', version, key),
      403,
    ],
  ] as const)('%s waits for its turn', async ([, upgrade, status]) => {
    await using upstream = await startSlow();
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const slow = head('GET /services/a/slow');
    const client = await rawClient(proxy.port, slow + slow + upgrade);
    await eventually(() => proxy.liveConnections.size >= 1);
    upstream.answer();
    await client.closed;
    expect(statuses(client.text())).toEqual([200, 200, status]);
    expect(client.text()).toMatch(/this is \/services\/a\/slow.*this is \/services\/a\/slow.*/s);
  });

  test('a client that leaves meanwhile is noticed', async () => {
    await using upstream = await startSlow();
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const slow = head('GET /services/a/slow');
    const upgrade = head('GET /services/a/x', 'Connection: Upgrade', 'Upgrade: h2c');
    const client = await rawClient(proxy.port, slow + upgrade);
    await eventually(() => proxy.liveConnections.size === 1);
    client.socket.destroy();
    await eventually(() => proxy.liveConnections.size === 0);
    upstream.answer();
  });
});
