import { execFile, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectSecurely } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { getRaw } from '../support/raw-request.ts';
import { pathOf, requires } from '../support/requires.ts';
import { runCommand } from '../support/run-command.ts';
import { adminToken } from '../support/server-hub.ts';
import {
  createTestHub,
  submitLogin,
  type TestHub,
  type TestHubConfig,
  until,
} from '../support/test-hub.ts';
import { issuedBy, selfSigned } from '../support/tls-front.ts';

const names = ['hub.localhost', '*.hub.localhost', 'own.hub.localhost'];

/** A frame of HTTP/2 (RFC 9113 §4.1). */
function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A field of a header block that is in no table (RFC 7541 §6.2.2). */
const field = (name: string, value: string) =>
  `\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`;

function* repeated(piece: Buffer, first = piece) {
  yield first;
  for (;;) yield piece;
}

/** Requests with these headers, each followed at once by what ends or spoils it. */
function* requests(headers: string, spoil: (stream: number) => Buffer) {
  for (let stream = 1; ; stream += 2) {
    yield Buffer.concat([frame(1, 5, stream, Buffer.from(headers, 'latin1')), spoil(stream)]);
  }
}
const reset = (stream: number) => frame(3, 0, stream, Buffer.from([0, 0, 0, 8]));
const get = '\x82\x87\x84';
const echo = '\x83\x87\x04\x09/app/echo\x01\x0dhub.localhost';

/** What floods send on and on. */
const floods: readonly [string, () => Generator<Buffer>][] = [
  ['rapid reset (CVE-2023-44487)', () => requests(get, reset)],
  ['rapid reset of CONNECT', () => requests('\x02\x07CONNECT\x01\x05a.hub', reset)],
  [
    'window updates of 0, which the hub resets (CVE-2025-8671)',
    () => requests(get, (stream) => frame(8, 0, stream, Buffer.alloc(4))),
  ],
  ['requests that are none (CVE-2019-9514)', () => requests('\x82', () => Buffer.alloc(0))],
  [
    'HEADERS without an end (CVE-2024-27983)',
    () => repeated(frame(9, 0, 1, Buffer.alloc(8, 0x82)), frame(1, 0, 1, Buffer.from([0x82]))),
  ],
  [
    'HEADERS of empty names (CVE-2019-9516)',
    () => repeated(frame(1, 5, 1, Buffer.from('\x82\x87\x84\0\0\0'.padEnd(900, '\0'), 'latin1'))),
  ],
  [
    'SETTINGS of more entries than a client has (CVE-2019-9515)',
    () => repeated(frame(4, 0, 0, Buffer.from('0003000000ff'.repeat(40), 'hex'))),
  ],
  ['SETTINGS whose answers are not read', () => repeated(frame(4, 0, 0))],
  [
    'PING whose answers are not read (CVE-2019-9512)',
    () => repeated(frame(6, 0, 0, Buffer.alloc(8))),
  ],
  [
    'DATA without any (CVE-2019-9518)',
    () => repeated(frame(0, 0, 1), frame(1, 4, 1, Buffer.from(echo, 'latin1'))),
  ],
];

/** The head of a record of 512 bytes, of which none comes. */
const partOfHello = Buffer.from([22, 3, 1, 2, 0]);

describe.skipIf(!requires('openssl', 'curl'))('a hub that ends TLS itself', () => {
  let authority: ReturnType<typeof selfSigned>;
  let directory = '';
  let port = 0;
  let redirectPort = 0;
  let config: TestHubConfig = {};
  let hub: TestHub;
  let patient: Awaited<ReturnType<typeof waiting>>[];
  /** The headers of each request that came to the app. */
  const seen: string[] = [];
  const app = createServer((req, res) => {
    seen.push(JSON.stringify(req.rawHeaders));
    if (req.url === '/app/echo') req.pipe(res);
    else if (req.url === '/app/odd') {
      res.writeHead(200, [
        'Content-Type',
        'a/b',
        'Content-Type',
        'c/d',
        'TE',
        'x',
        'A',
        'ü',
        'A',
        'b',
      ]);
      res.end('odd');
    } else if (req.url === '/app/hints') {
      res.writeProcessing();
      res.writeEarlyHints({
        link: ['</a.css>; rel=preload', '</b.js>; rel=preload'],
        'x-more': '1',
      });
      res.end('with hints');
    } else if (req.url === '/app/trailers') {
      res.write('a part, ');
      // For the last four Node throws where it sends trailers over HTTP/2.
      res.addTrailers({
        ...{ 'X-Sum': '5', 'Set-Cookie': 'a=b', 'Content-Type': 'c/d' },
        ...{ 'HTTP2-Settings': 'c/d', 'Keep-Alive': 'c/d', TE: 'c/d', Upgrade: 'c/d' },
      });
      res.end('the rest');
    } else if (req.url === '/app/999') {
      res.statusCode = 999;
      res.end();
    } else if (req.url === '/app/breaks') res.write('a part', () => res.destroy());
    else res.end(JSON.stringify(req.rawHeaders));
  });
  new WebSocketServer({ server: app }).on('connection', (socket) =>
    socket.on('message', (data) => socket.send(data)),
  );

  const fileOf = (kind: string, index: number) => join(directory, 'tls', `${index}.${kind}`);

  async function writePair(index: number, name = names[index] ?? ''): Promise<void> {
    const { cert, key } = selfSigned([name], 90);
    await writeFile(fileOf('key', index), key, { mode: 0o600 });
    await writeFile(fileOf('pem', index), cert);
  }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hub-tls-'));
    await mkdir(join(directory, 'tls'));
    await Promise.all(names.map((_, index) => writePair(index)));
    authority = selfSigned(['authority.test']);
    await writeFile(join(directory, 'tls', 'authority.pem'), authority.cert);
    await once(app.listen(0, '127.0.0.1'), 'listening');
    port = await freePort();
    redirectPort = await freePort();
    config = {
      Hub: {
        bind_url: `https://127.0.0.1:${port}/`,
        public_url: `https://hub.localhost:${port}/`,
        redirect_bind_url: `http://127.0.0.1:${redirectPort}/`,
        hsts_max_age_days: 2,
        http2: true,
        client_authorities: 'tls/authority.pem',
        certificates: names.map((_, index) => ({
          certificate: `tls/${index}.pem`,
          key: `tls/${index}.key`,
        })),
      },
      Proxy: {
        max_connections_per_address: 220,
        client_read_timeout: 5,
        extra_routes: {
          '/app/': {
            target: `http://127.0.0.1:${(app.address() as AddressInfo).port}`,
            access: 'public',
          },
          '/shown/': {
            target: `http://127.0.0.1:${(app.address() as AddressInfo).port}`,
            access: 'public',
            limits: { client_certificate: 'required' },
          },
          '/limited/': {
            target: `http://127.0.0.1:${(app.address() as AddressInfo).port}`,
            access: 'public',
            limits: { requests_per_second: 2, max_body_size: 1_000 },
            headers: { request: { set: { 'X-Api-Key': 'of the app' }, remove: ['Accept'] } },
          },
        },
      },
    };
    hub = await createTestHub(config, { directory });
    patient = await Promise.all([waiting(), waiting(partOfHello)]);
  });
  afterAll(async () => {
    await hub?.[Symbol.asyncDispose]();
    app.close();
  });

  /** What `openssl s_client` says of a connection. */
  async function handshake(...words: string[]): Promise<string> {
    const args = words.filter((word) => word !== 'R');
    const child = spawn(pathOf('openssl'), ['s_client', '-connect', `127.0.0.1:${port}`, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    if (words.includes('R')) child.stdin.write('R\n');
    else child.stdin.end();
    const said = await Promise.all([text(child.stdout), text(child.stderr)]);
    return said.join('');
  }

  const curl = async (...args: string[]) =>
    (await promisify(execFile)(pathOf('curl'), ['-sk', ...args])).stdout;

  test.each([
    ['hub.localhost', 'hub.localhost'],
    ['ada.hub.localhost', '*.hub.localhost'],
    ['own.hub.localhost', 'own.hub.localhost'],
    ['nobody.test', 'hub.localhost'],
    [undefined, 'hub.localhost'],
  ])('shows who asks for %s the certificate of %s', async (asked, shown) => {
    const name = asked === undefined ? ['-noservername'] : ['-servername', asked];
    expect(await handshake(...name)).toContain(`subject=CN = ${shown}\n`);
  });

  test.each([
    [['-tls1_2'], /Protocol +: TLSv1\.2/],
    [['-tls1_3', '-alpn', 'http/1.1'], /ALPN protocol: http\/1\.1/],
    [['-tls1_1', '-cipher', 'ALL:@SECLEVEL=0'], /alert protocol version/],
    [['-tls1', '-cipher', 'ALL:@SECLEVEL=0'], /alert protocol version/],
    [['-tls1_2', '-cipher', 'AES128-SHA:AES256-GCM-SHA384'], /alert handshake failure/],
    [['-alpn', 'nobody'], /alert no application protocol/],
    [['-tls1_2', '-legacy_renegotiation'], /Secure Renegotiation IS supported/],
  ])('a handshake with %j: %s', async (args, said) => {
    expect(await handshake(...args)).toMatch(said);
  });

  test('people log in, with Secure cookies, and apps learn that the visitor came by https', async () => {
    const browser = new FakeBrowser();
    const login = await submitLogin(browser, hub.url, 'ada', 'test');
    expect(login.status).toBe(302);
    for (const cookie of login.headers['set-cookie'] ?? []) expect(cookie).toContain('; Secure');
    expect(login.headers['strict-transport-security']).toBe('max-age=172800');
    const home = await browser.open(`${hub.url}hub/home`);
    expect([home.status, home.url]).toEqual([200, `${hub.url}hub/home`]);

    const resolved = ['--connect-to', `::127.0.0.1:${port}`];
    for (const version of ['--http1.1', '--http2']) {
      const forged = ['-H', 'X-Forwarded-Proto: http'];
      const seen = await curl(...resolved, version, ...forged, `${hub.url}app/`);
      expect(seen).toContain('"X-Forwarded-Proto","https"');
      expect(seen.match(/forwarded-proto/gi)).toHaveLength(1);
    }
  });

  test.each([
    ['hub.localhost', '/hub/home?a=%C3%BC', 308, '/hub/home?a=%C3%BC'],
    ['ADA.hub.localhost:80', '/user/ada/', 308, '/user/ada/'],
    ['elsewhere.test', '/', 421, undefined],
    ['elsewhere.test@hub.localhost', '/', 400, undefined],
    ['hub.localhost, elsewhere.test', '/', 400, undefined],
    ['hub.localhost', '//elsewhere.test/', 400, undefined],
    ['hub.localhost', '/\\elsewhere.test', 400, undefined],
    ['hub.localhost', 'http://elsewhere.test/', 400, undefined],
    ['hub.localhost', '/user/../hub/', 400, undefined],
  ])('plain http to %s at %s: %i', async (host, target, status, path) => {
    const answer = await getRaw(`http://127.0.0.1:${redirectPort}`, target, [`Host: ${host}`]);
    expect(answer.status).toBe(status);
    const name = host.toLowerCase().replace(/:.*/, '');
    const expected = path === undefined ? undefined : `https://${name}:${port}${path}`;
    expect(/^location: (.*?)\r$/im.exec(answer.text)?.[1]).toBe(expected);
    expect(answer.text).not.toMatch(/strict-transport/i);
  });

  test('a gateway process redirects plain http too, where it is told to', async () => {
    const at = await freePort();
    const plain = `http://127.0.0.1:${await freePort()}/`;
    const bind = (scheme: string) => [
      ...['--bind', `${scheme}://127.0.0.1:${at}/`],
      ...['--redirect-bind', plain],
    ];
    await using _ = await startGateway(hub, { args: bind('https') });
    const ask = (host: string) => getRaw(plain, '/user/ada/?a=b', [`Host: ${host}`]);
    expect((await ask('own.hub.localhost')).text).toMatch(
      new RegExp(
        `^HTTP/1.1 308 .*^location: https://own.hub.localhost:${port}/user/ada/\\?a=b\r$`,
        'ms',
      ),
    );
    expect((await ask('elsewhere.test')).status).toBe(421);
    await expect(startGateway(hub, { args: bind('http') })).rejects.toThrow('https:// address');
  });

  const shown = async () =>
    /-----BEGIN CERTIFICATE-----[^-]+/.exec(
      await handshake('-servername', 'own.hub.localhost'),
    )?.[0];

  test('new files serve from then on, with connections left open', async () => {
    const before = await shown();
    const socket = new WebSocket(`wss://127.0.0.1:${port}/app/`, { rejectUnauthorized: false });
    await once(socket, 'open');
    await writePair(2);
    await hub.reload(config);
    expect(await shown()).not.toBe(before);
    socket.send('still here');
    expect(String((await once(socket, 'message'))[0])).toBe('still here');
    socket.close();
  });

  test('files that cannot be used change nothing, and are reported', async () => {
    const before = await shown();
    const metric = async () => {
      const exposition = await (await hub.api('/../metrics', adminToken)).text();
      return /hub_certificate_current\{certificate="tls\/2.pem"\} (\d)/.exec(exposition)?.[1];
    };
    expect(await metric()).toBe('1');
    await writeFile(fileOf('pem', 2), 'nothing of the kind');
    await until(async () => (await metric()) === '0', 'the broken file is seen');
    expect(await shown()).toBe(before);
    const reported = hub.logLines.findLast(({ certificate }) => certificate === 'tls/2.pem');
    expect(reported?.['problem']).toBe(
      'Hub.certificates[2].certificate: tls/2.pem holds no certificate in PEM',
    );
    await writePair(2, 'wrong.test');
    await chmod(fileOf('key', 2), 0o644);
    await expect(hub.reload(config)).rejects.toThrow(/2\.key can be read by other users.*chmod o=/);
    const doctor = await runCommand(directory, ['doctor']);
    expect(doctor.stdout + doctor.stderr).toMatch(/2\.key can be read by other users/);
    await writePair(2);
    await chmod(fileOf('key', 2), 0o600);
  });

  test.each([
    [['--http1.1', '-H', 'TE: trailers'], true],
    [['--http1.1'], false],
    [['--http2'], true],
  ])('trailers of an app reach curl with %s: %s', async (args, isThere) => {
    const to = ['--connect-to', `::127.0.0.1:${port}`, '-D', '-'];
    const said = await curl(...args, ...to, `${hub.url}app/trailers`);
    expect(said).toContain('a part, the rest');
    expect(/x-sum: 5\r\n/.test(said)).toBe(isThere);
    expect(said).not.toMatch(/a=b|c\/d/);
    // What has none ends as it did.
    expect(await curl(...args, ...to, `${hub.url}hub/health`)).toMatch(/"ok"/);
    expect(await curl(...args, ...to, '-d', 'said', `${hub.url}app/echo`)).toMatch(/said$/);
  });

  describe.each(['--http1.1', '--http2'])('with certificates of visitors by %s', (version) => {
    async function open(path: string, shown?: { readonly key: Buffer; readonly cert: Buffer }) {
      const file = join(directory, 'client.pem');
      if (shown !== undefined) await writeFile(file, Buffer.concat([shown.cert, shown.key]));
      return await curl(
        ...['--connect-to', `::127.0.0.1:${port}`, version, '-w', '%{http_code}'],
        ...['-H', 'Client-Cert: :forged:', '-H', 'Client_Cert: forged'],
        ...(shown === undefined ? [] : ['--cert', file]),
        `${hub.url}${path}`,
      );
    }

    test('one of the authority opens the route, and the app gets it', async () => {
      const mine = issuedBy(authority, 'ada');
      const seen = await open('shown/', mine);
      const der = new X509Certificate(mine.cert).raw.toString('base64');
      expect(seen).toMatch(/200$/);
      expect(seen).toContain(`"Client-Cert",":${der}:"`);
      expect(seen).not.toContain('forged');
      expect(await open('app/', mine)).not.toMatch(/client.cert/i);
    });

    test('without one, or with one of others, it stays closed, and other routes are open', async () => {
      for (const shown of [undefined, selfSigned(['ada']), issuedBy(selfSigned(['b']), 'ada')]) {
        expect(await open('shown/', shown)).toMatch(/needs a certificate.*403$/s);
        expect(await open('app/', shown)).toMatch(/200$/);
      }
      const before = seen.length;
      // OpenSSL ends the connection of one that is signed by another key than its issuer has.
      const impostor = issuedBy(selfSigned(['authority.test']), 'ada');
      expect(await open('shown/', impostor).catch(() => 'cut')).not.toMatch(/200$/);
      expect(seen.length).toBe(before);
    });
  });

  test('an authority that is none is refused', async () => {
    const file = join(directory, 'tls', 'authority.pem');
    await writeFile(file, issuedBy(authority, 'ada').cert);
    const check = () => runCommand(directory, ['check']);
    expect((await check()).stderr).toMatch(/client_authorities: .*of no authority: CN=ada/);
    await writeFile(file, authority.cert);
  });

  /** A client that sends some bytes, if any, and then waits. */
  async function waiting(bytes?: string | Buffer) {
    const client = connect(port, '127.0.0.1');
    client.on('error', () => {});
    const closed = new Promise((resolve) => client.resume().once('close', resolve));
    await once(client, 'connect');
    if (bytes !== undefined) client.write(bytes);
    return { client, closed };
  }

  test('handshakes that stall, are garbage or too many cost the client its connection alone', async () => {
    const stalled = await Promise.all(Array.from({ length: 218 }, () => waiting(partOfHello)));
    await (await waiting()).closed;
    for (const { client } of stalled) client.destroy();
    for (const garbage of ['GET / HTTP/1.1\r\nHost: hub\r\n\r\n', Buffer.alloc(70_000, 'x')]) {
      await (await waiting(garbage)).closed;
    }
    expect(await curl(`https://127.0.0.1:${port}/hub/health`)).toContain('ok');
    // After ten seconds.
    await Promise.all(patient.map(({ closed }) => closed));
  });

  test('renegotiation and early data are refused', async () => {
    expect(await handshake('-tls1_2', 'R')).toMatch(/no renegotiation/);
    expect(await handshake('-tls1_3')).toMatch(/Early data was not sent|Max Early Data: 0/);
  });

  describe('over HTTP/2', () => {
    async function withSession<Result>(
      work: (session: ClientHttp2Session) => Promise<Result>,
    ): Promise<Result> {
      const session = connectHttp2(`https://127.0.0.1:${port}`, {
        rejectUnauthorized: false,
        maxSessionMemory: 200,
      });
      session.on('error', () => {});
      try {
        return await work(session);
      } finally {
        session.destroy();
      }
    }

    /** An answer, or the code of the reset that came in its place. */
    function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: Buffer) {
      const stream = session.request(
        { ':authority': 'hub.localhost', ...headers },
        { endStream: body === undefined },
      );
      const got: { status?: number; code?: number } = {};
      let text = '';
      stream.on('error', () => {});
      stream.on('response', ({ ':status': status }) => {
        got.status = Number(status);
      });
      stream.setEncoding('latin1').on('data', (piece) => {
        text += piece;
      });
      if (body !== undefined) stream.end(body);
      return new Promise<typeof got & { text: string }>((resolve) => {
        stream.once('close', () => resolve({ ...got, code: stream.rstCode, text }));
      });
    }

    test('bodies pass, many at a time, and what breaks off has no end', async () => {
      const body = Buffer.alloc(200_000, 'hub');
      await withSession(async (session) => {
        const answers = await Promise.all(
          Array.from({ length: 100 }, () =>
            ask(session, { ':method': 'POST', ':path': '/app/echo' }, body),
          ),
        );
        for (const { status, text } of answers) {
          expect([status, text === body.toString()]).toEqual([200, true]);
        }
        expect(session.remoteSettings?.enableConnectProtocol).toBe(false);
        const broken = await ask(session, { ':path': '/app/breaks' });
        expect(broken).toMatchObject({ status: 200, code: constants.NGHTTP2_INTERNAL_ERROR });
        const unread = await ask(session, { ':path': '/app/', ':method': 'POST' }, body);
        expect(unread).toMatchObject({ status: 200, code: constants.NGHTTP2_NO_ERROR });
        const unreadInChunks = { ':path': '/app/trailers', ':method': 'POST' };
        expect(await ask(session, unreadInChunks, body)).toMatchObject({
          text: 'a part, the rest',
          code: constants.NGHTTP2_NO_ERROR,
        });
        const { status, text } = await ask(session, { ':path': '/hub/health', ':method': 'HEAD' });
        expect([status, text]).toEqual([200, '']);
        expect(await ask(session, { ':path': '/app/odd' })).toMatchObject({
          status: 200,
          text: 'odd',
        });
        expect((await ask(session, { ':path': '/app/999' })).status).toBe(502);
      });
    });

    const refused = constants.NGHTTP2_PROTOCOL_ERROR;
    test.each([
      [{ ':path': 'hub/health' }, refused],
      [{ ':path': 'https://elsewhere.test/hub/health' }, refused],
      [{ ':path': '/app/../hub/health' }, 400],
      [{ ':path': '/app/%2e%2e/hub/health' }, 400],
      [{ ':path': '/app/ HTTP/1.1' }, refused],
      [{ ':path': '/app/', ':authority': 'a.test, b.test' }, refused],
      [{ ':path': '/app/', host: 'elsewhere.test' }, 400],
      [{ ':path': '/app/', ':method': 'GET / HTTP/1.1' }, refused],
      [{ ':path': '/app/', 'x-name': 'ünlaut' }, 200],
    ])('%j is answered with %i', async (headers, status) => {
      const answer = await withSession((session) => ask(session, headers));
      expect(answer.status ?? answer.code).toBe(status);
    });

    test.each(['navigate', 'cors'])('early hints reach who is to %s', async (mode) => {
      const links = '</a.css>; rel=preload, </b.js>; rel=preload';
      const expected = mode === 'navigate' ? links : undefined;
      await withSession(async (session) => {
        const stream = session.request({
          ...{ ':authority': 'hub.localhost', ':path': '/app/hints', 'sec-fetch-mode': mode },
        });
        const hints: OutgoingHttpHeaders[] = [];
        stream.on('headers', (headers) => hints.push(headers));
        expect(await text(stream)).toBe('with hints');
        expect(hints).toEqual(
          expected === undefined ? [] : [expect.objectContaining({ ':status': 103, link: links })],
        );
        expect(hints[0]?.['x-more']).toBeUndefined();
      });
      const resolved = ['--connect-to', `::127.0.0.1:${port}`];
      const asked = ['--http1.1', '-i', '-H', `Sec-Fetch-Mode: ${mode}`, `${hub.url}app/hints`];
      const heads = (await curl(...resolved, ...asked)).split('\r\n\r\n');
      expect(heads.map((head) => head.split('\r\n', 1)[0])).toEqual([
        ...(expected === undefined ? [] : ['HTTP/1.1 103 Early Hints']),
        'HTTP/1.1 200 OK',
        'with hints',
      ]);
    });

    test('the limits and headers of a route hold', async () => {
      await withSession(async (session) => {
        const asked = { ':path': '/limited/', 'x-api-key': 'forged', accept: 'a/b' };
        const large = { ...asked, ':method': 'POST' };
        expect(await ask(session, large, Buffer.alloc(2_000))).toMatchObject({ status: 413 });
        const { text } = await ask(session, asked);
        expect(text).toContain('"X-Api-Key","of the app"');
        expect(text).not.toMatch(/forged|"accept"/);
        const answers = await Promise.all([1, 2, 3, 4, 5].map(() => ask(session, asked)));
        expect(answers.map(({ status }) => status)).toContain(429);
      });
    });

    test('streams count as connections of their address, on however many connections', async () => {
      const upload = (session: ClientHttp2Session) =>
        session
          .request({ ':authority': 'hub.localhost', ':path': '/app/echo', ':method': 'POST' })
          .on('error', () => {});
      const health = (session: ClientHttp2Session) => ask(session, { ':path': '/hub/health' });
      await withSession((first) =>
        withSession(async (second) => {
          for (let index = 0; index < 110; index += 1) {
            upload(first);
            upload(second);
          }
          await until(async () => (await health(first)).status === 429, 'there is no room');
          second.destroy();
          await until(async () => (await health(first)).status === 200, 'there is room again');
        }),
      );
    });

    test('a client that takes no answer loses it', async () => {
      const slow = connectHttp2(`https://127.0.0.1:${port}`, {
        rejectUnauthorized: false,
        settings: { initialWindowSize: 0 },
      });
      slow.on('error', () => {});
      const untaken = await ask(slow, { ':authority': 'hub.localhost', ':path': '/hub/health' });
      expect(untaken).toMatchObject({ status: 200, code: constants.NGHTTP2_INTERNAL_ERROR });
      slow.destroy();
    });

    async function connectFrames(...first: Buffer[]) {
      const client = connectSecurely({
        port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        ALPNProtocols: ['h2'],
      });
      client.on('error', () => {});
      await once(client, 'secureConnect');
      const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
      client.write(Buffer.concat([preface, frame(4, 0, 0), ...first]));
      return client;
    }

    test.each(floods)('a flood of %s ends its connection, and no other', async (name, flood) => {
      await withSession(async (bystander) => {
        const client = await connectFrames();
        const closed = new Promise((resolve) => client.once('close', resolve));
        if (!name.includes('not read')) client.resume();
        const pieces = flood();
        const send = () => {
          while (client.writable && client.write(pieces.next().value ?? '')) {}
        };
        client.on('drain', send);
        send();
        await closed;
        expect((await ask(bystander, { ':path': '/hub/health' })).status).toBe(200);
      });
    });

    const long = 'content-length';
    test.each([
      [[['x-plain', 'x']], 'answered'],
      [[['te', 'trailers']], 'answered'],
      [[['x-a\r\nx-spoilt', 'b']], 'answered'],
      [[['x-a', 'b\r\nx-spoilt: c']], 'answered'],
      [[['x-a', 'b\0x-spoilt']], 'answered'],
      [[['x-spoilt:', 'b']], 'answered'],
      [[['X-Spoilt', 'b']], 'refused'],
      [[['te', 'gzip']], 'refused'],
      [[['connection', 'x-spoilt']], 'refused'],
      [[['keep-alive', '1']], 'refused'],
      [[['transfer-encoding', 'chunked']], 'refused'],
      [[['upgrade', 'websocket']], 'refused'],
      [
        [
          [long, '1'],
          [long, '1'],
        ],
        'refused',
      ],
      [[[long, '+1']], 'refused'],
      [[[long, '5']], 'refused'],
      [[[':path', '/spoilt']], 'refused'],
      [
        [
          ['x-a', 'b'],
          [':method', 'PUT'],
        ],
        'refused',
      ],
    ])('fields %j are %s, and none reaches an app as another', async (fields, outcome) => {
      const before = seen.length;
      const block = `${echo}${fields.map(([name = '', value = '']) => field(name, value)).join('')}`;
      const ending = frame(0, 1, 1, Buffer.from('x'));
      const client = await connectFrames(frame(1, 4, 1, Buffer.from(block, 'latin1')), ending);
      // Until the hub answers HEADERS, RST_STREAM or GOAWAY.
      let received = Buffer.alloc(0);
      let type: number | undefined;
      for await (const piece of client) {
        received = Buffer.concat([received, piece as Buffer]);
        for (let at = 0; at + 9 <= received.length; at += 9 + received.readUIntBE(at, 3)) {
          if ([1, 3, 7].includes(received[at + 3] ?? 0)) type ??= received[at + 3];
        }
        if (type !== undefined) break;
      }
      expect(type === 1).toBe(outcome === 'answered');
      expect(seen.length - before).toBe(outcome === 'answered' ? 1 : 0);
      expect(seen.join()).not.toMatch(/spoilt|trailers/i);
    });

    test.skipIf(!requires('h2load'))('h2load sees no failed request', async () => {
      const { stdout } = await promisify(execFile)(pathOf('h2load'), [
        ...['-n', '2000', '-c', '10', '-m', '20'],
        `https://127.0.0.1:${port}/app/`,
      ]);
      expect(stdout).toMatch(/requests: 2000 total, .* 2000 succeeded, 0 failed, 0 errored/);
    });
  });
});
