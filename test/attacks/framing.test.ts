import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGuardedApp } from '../support/guarded-app.ts';
import {
  eventually,
  head,
  rawClient,
  rawRequest,
  startProxy,
  startRawUpstream,
  statusOf,
} from './proxy-harness.ts';
import { placeNames, startPlaces, statuses } from './served-places.ts';

let world: Awaited<ReturnType<typeof startPlaces>>;
beforeAll(async () => {
  world = await startPlaces();
});
afterAll(() => world[Symbol.asyncDispose]());

const chunks = '5\r\nhello\r\n0\r\n\r\n';

describe.for(placeNames)('at %s', (name) => {
  const next = () => world.requestAt(name, 'GET', 'next');
  const ask = (text: string) => rawRequest(world.places[name].port, text);

  test.for(['', ' HTTP/0.9', ' HTTP/2.0'])(
    'row 44: a request line that ends with “%s” is 505',
    async (version) => {
      const text = world
        .requestAt(name, 'POST', 'x', 'Content-Length: 5')
        .replace(' HTTP/1.1', version);
      expect(statuses(await ask(`${text}hello${next()}`))).toEqual([505]);
    },
  );

  test.for([
    ['gzip, chunked', 501],
    ['identity, chunked', 501],
    [',chunked', 501],
    ['x\r\nTransfer-Encoding: chunked', 501],
    ['chunked\r\nTransfer-Encoding: chunked', 400],
    ['chunked, gzip', 400],
    ['gzip', 400],
  ] as const)('row 44: the transfer coding “%s” is %i', async ([coding, status]) => {
    const text = world.requestAt(name, 'POST', 'x', `Transfer-Encoding: ${coding}`);
    expect(statuses(await ask(text + chunks + next()))).toEqual([status]);
  });

  test.for(['9223372036854775808', '18446744073709551615', '9007199254740992'])(
    'row 44: the length %s is 400',
    async (length) => {
      const text = world.requestAt(name, 'POST', 'x', `Content-Length: ${length}`);
      expect(statuses(await ask(`${text}hello`))).toEqual([400]);
    },
  );
});

describe('row 44: a length', () => {
  test('of a request is written as a plain number', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () => {
        if (peer.text().endsWith('hello'))
          peer.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const length = 'Content-Length: 00000000000000000000000000005';
    await rawRequest(proxy.port, `${head('POST /services/a/', length, 'Connection: close')}hello`);
    expect(upstream.received()).toMatch(/content-length: 5\r\n/i);
  });

  test('of an answer is written as a plain number', async () => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () =>
        peer.write('HTTP/1.1 200 OK\r\nContent-Length: 000000000000005\r\n\r\nhello'),
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const answer = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(answer).toMatch(/content-length: 5\r\n/i);
  });
});

describe('row 44: a bare line feed in an answer is refused at once', () => {
  const started = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const forms = [
    ['in the status line', 'HTTP/1.1 200 OK\n'],
    ['behind a header', 'HTTP/1.1 200 OK\r\nContent-Length: 2\n\nok'],
    ['as a blank line', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok'],
    ['behind a chunk size', `${started}2\nok`],
    ['behind a chunk', `${started}2\r\nok\n0\n\n`],
    ['behind a trailer', `${started}0\r\nx: y\n\n`],
  ] as const;

  async function outcomeOf(pieces: readonly string[]): Promise<string> {
    await using upstream = await startRawUpstream((peer) => {
      const next = pieces.values();
      const writeNext = () => {
        const { value } = next.next();
        if (value === undefined) return;
        peer.write(value);
        setImmediate(writeNext);
      };
      peer.socket.once('more', writeNext);
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const answer = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    await upstream.peers[0]?.closed;
    return answer;
  }

  test.for(forms)('%s', async ([, answer]) => {
    const outcome = await outcomeOf([answer]);
    // Once a part of the body is on its way, all that is left is to break off.
    if (answer.includes('2\r\nok')) expect(outcome).not.toContain('0\r\n\r\n');
    else expect(statusOf(outcome)).toBe(502);
  });

  test.for(forms)('%s, byte by byte', async ([, answer]) => {
    expect(await outcomeOf([...answer])).not.toContain('0\r\n\r\n');
  });
});

test.for(['ZZ\r\nok', '-2\r\nok', '2;\x00\r\nok', '\r\nok'])(
  'row 53: an answer whose first chunk is broken is 502: %j',
  async (body) => {
    await using upstream = await startRawUpstream((peer) => {
      const answer = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`;
      peer.socket.once('more', () => peer.write(answer));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const outcome = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(statusOf(outcome)).toBe(502);
  },
);

describe('row 46: an interim answer', () => {
  const upgrade = head(
    'GET /services/a/',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  );

  test.for([
    'HTTP/1.1 101 X\r\n\r\n',
    'HTTP/1.1 101 X\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n',
    'HTTP/1.1 101 X\r\nConnection: Upgrade\r\n\r\n',
  ])('101 to a handshake without its headers is 502: %j', async (answer) => {
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.once('more', () => peer.write(`${answer}evil`));
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const client = await rawClient(proxy.port, `${upgrade}tunnelled`);
    await client.closed;
    expect(statuses(client.text())).toEqual([502]);
    expect(client.text()).not.toContain('evil');
    expect(upstream.received()).not.toContain('tunnelled');
    await upstream.peers[0]?.closed;
    await eventually(() => proxy.liveConnections.size === 0);
  });
});

describe('row 46: an app behind hub-singleuser', () => {
  const appSource = `
    const answers = {
      plain: 'HTTP/1.1 101 X\\r\\n\\r\\nevil',
      wrong: 'HTTP/1.1 101 X\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Accept: x\\r\\n\\r\\nevil',
      feed: 'HTTP/1.1 200 OK\\nContent-Length: 4\\n\\nevil',
    };
    require('node:net').createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', (bytes) => {
        const name = /^GET \\/user\\/alice\\/(\\w*) /.exec(bytes.toString())[1];
        socket.write(answers[name] ?? 'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n');
      });
    }).listen(Number(process.env.PORT), '127.0.0.1');
  `;
  let app: Awaited<ReturnType<typeof startGuardedApp>>;
  beforeAll(async () => {
    app = await startGuardedApp({ command: [process.execPath, '--eval', appSource] });
    await app.singleuser.ready;
  });
  afterAll(() => app[Symbol.asyncDispose]());

  const authorization = 'Authorization: token good';
  const handshake = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ];
  test.for([
    ['101 without a handshake', 'plain', ['Connection: close']],
    ['101 to a handshake without its headers', 'plain', handshake],
    ['101 that accepts another key', 'wrong', handshake],
    ['101 of a WebSocket that nobody asked for', 'wrong', ['Connection: close']],
    ['a bare line feed', 'feed', ['Connection: close']],
  ] as const)('%s is 502', async ([, name, headers]) => {
    const text = head(`GET /user/alice/${name}`, authorization, ...headers);
    const answer = await rawRequest(app.port, text);
    expect([statuses(answer), answer.includes('evil')]).toEqual([[502], false]);
  });
});
