import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
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
import { selfSigned } from '../support/tls-front.ts';

const names = ['hub.localhost', '*.hub.localhost', 'own.hub.localhost'];

/** The head of a record of 512 bytes, of which none comes. */
const partOfHello = Buffer.from([22, 3, 1, 2, 0]);

describe.skipIf(!requires('openssl', 'curl'))('a hub that ends TLS itself', () => {
  let directory = '';
  let port = 0;
  let redirectPort = 0;
  let config: TestHubConfig = {};
  let hub: TestHub;
  let patient: Awaited<ReturnType<typeof waiting>>[];
  const app = createServer((req, res) => res.end(JSON.stringify(req.headers)));
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
    await once(app.listen(0, '127.0.0.1'), 'listening');
    port = await freePort();
    redirectPort = await freePort();
    config = {
      Hub: {
        bind_url: `https://127.0.0.1:${port}/`,
        public_url: `https://hub.localhost:${port}/`,
        redirect_bind_url: `http://127.0.0.1:${redirectPort}/`,
        hsts_max_age_days: 2,
        certificates: names.map((_, index) => ({
          certificate: `tls/${index}.pem`,
          key: `tls/${index}.key`,
        })),
      },
      Proxy: {
        max_connections_per_address: 20,
        extra_routes: {
          '/app/': {
            target: `http://127.0.0.1:${(app.address() as AddressInfo).port}`,
            access: 'public',
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
    const seen = JSON.parse(
      await curl(...resolved, '-H', 'X-Forwarded-Proto: http', `${hub.url}app/`),
    );
    expect(seen['x-forwarded-proto']).toBe('https');
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
    const stalled = await Promise.all(Array.from({ length: 18 }, () => waiting(partOfHello)));
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
});
