import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { issueCertificate } from '../../src/platform/internal-tls/certificate-maker.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { type ProgramName, pathOf, requires } from '../support/requires.ts';
import { adminToken } from '../support/server-hub.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';
import { issuedBy, selfSigned } from '../support/tls-front.ts';

const run = async (program: ProgramName, ...args: string[]) =>
  (await promisify(execFile)(pathOf(program), args)).stdout;

describe.skipIf(!requires('openssl', 'curl'))('a login by the certificate of a browser', () => {
  let own = '';
  let port = 0;
  let hub: TestHub;
  const file = (name: string) => join(own, name);

  async function issue(
    subject: string,
    authority?: ReturnType<typeof selfSigned>,
  ): Promise<string> {
    const made = issuedBy(
      authority ?? { cert: await readFile(file('ca.pem')), key: await readFile(file('ca.key')) },
      subject,
    );
    const path = file(`${subject.replaceAll('/', '-')}.pem`);
    await writeFile(path, Buffer.concat([made.cert, made.key]));
    return path;
  }

  /** Writes the list of what the authority has revoked. */
  async function publish(...revoked: string[]): Promise<void> {
    const words = ['ca', '-config', file('ca.cnf')];
    for (const each of revoked) await run('openssl', ...words, '-revoke', each);
    await run('openssl', ...words, '-gencrl', '-out', file('list.crl'));
  }

  beforeAll(async () => {
    own = await mkdtemp(join(tmpdir(), 'hub-certificate-login-'));
    const authority = selfSigned(['authority.test']);
    const served = selfSigned(['hub.localhost']);
    await writeFile(file('ca.pem'), authority.cert);
    await writeFile(file('ca.key'), authority.key, { mode: 0o600 });
    await writeFile(file('hub.pem'), served.cert);
    await writeFile(file('hub.key'), served.key, { mode: 0o600 });
    await writeFile(file('index.txt'), '');
    await writeFile(
      file('ca.cnf'),
      `[ca]\ndefault_ca=own\n[own]\ndatabase=${file('index.txt')}\ncertificate=${file('ca.pem')}\n` +
        `private_key=${file('ca.key')}\ndefault_md=sha256\ndefault_crl_days=2\n`,
    );
    await publish();
    port = await freePort();
    hub = await createTestHub({
      Hub: {
        bind_url: `https://127.0.0.1:${port}/`,
        public_url: 'https://hub.localhost/',
        authenticator_class: 'certificate',
        certificates: [{ certificate: file('hub.pem'), key: file('hub.key') }],
        client_authorities: file('ca.pem'),
        client_revocation_lists: [file('list.crl')],
      },
      Authenticator: {
        allow_all: false,
        allowed_users: ['ada', 'bob', 'eve'],
        admin_users: ['bob'],
      },
      CertificateAuthenticator: { groups_field: 'OU' },
    });
  });
  afterAll(async () => {
    await hub?.[Symbol.asyncDispose]();
    await rm(own, { recursive: true, force: true });
  });

  /** What a page says to a browser that has just begun, and the status. */
  const open = async (args: readonly string[], at = port) =>
    await run(
      'curl',
      ...['-sS', '-k', '-L', '--max-time', '20', '-w', ' %{http_code}', '-c', '', '-b', ''],
      ...['--connect-to', `::127.0.0.1:${at}`, ...args],
      'https://hub.localhost/hub/home',
    );

  /** What a page says over a connection by OpenSSL, which can go on with a session of TLS. */
  async function resume(certificate: string, ...more: string[]): Promise<string> {
    const child = spawn(
      pathOf('openssl'),
      [
        ...['s_client', '-connect', `127.0.0.1:${port}`, '-servername', 'hub.localhost'],
        ...['-tls1_2', '-cert', certificate, '-ign_eof', ...more],
      ],
      { stdio: ['pipe', 'pipe', 'ignore'] },
    );
    child.stdin.end('GET /hub/login HTTP/1.1\r\nHost: hub.localhost\r\nConnection: close\r\n\r\n');
    return await text(child.stdout);
  }

  /** A connection over which a request with this certificate was answered. */
  async function keepOpen(certificate: string): Promise<TLSSocket> {
    const pem = await readFile(certificate);
    const address = { host: '127.0.0.1', port, servername: 'hub.localhost' };
    const socket = connect({ ...address, rejectUnauthorized: false, key: pem, cert: pem });
    socket.write('GET /hub/login HTTP/1.1\r\nHost: hub.localhost\r\n\r\n');
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^location: /im);
    return socket.resume();
  }

  test('is for its owner, by the rules for users', async () => {
    expect(await open(['--cert', await issue('ada')])).toContain('Hello, ada');
    expect(await open(['--cert', await issue('carol')])).toMatch(/ 403$/);
    await open(['--cert', await issue('bob/OU=ops')]);
    const model = (await (await hub.api('/users/bob', adminToken)).json()) as Record<
      string,
      unknown
    >;
    expect(model).toMatchObject({ admin: true });
  });

  test('is for nobody without one, with one of others, or with what a header says', async () => {
    const mine = await readFile(await issue('ada'), 'utf8');
    const der = mine.slice(mine.indexOf('\n') + 1, mine.indexOf('-----END')).replaceAll('\n', '');
    const claims = ['-H', `Client-Cert: :${der}:`, '-H', `X-Forwarded-Client-Cert: ${der}`];
    for (const args of [[], claims, ['-H', 'X-Forwarded-For: 127.0.0.1', ...claims]]) {
      expect(await open(args)).not.toContain('Hello');
    }
    for (const name of ['authority.test', 'other.test']) {
      const foreign = await issue('bob', selfSigned([name]));
      expect(await open(['--cert', foreign]).catch(() => 'cut')).not.toContain('Hello');
    }
  });

  test('ends with the certificate, also where a session of TLS goes on', async () => {
    const authority = {
      certificate: await readFile(file('ca.pem'), 'utf8'),
      key: await readFile(file('ca.key'), 'utf8'),
    };
    const endsAtMs = Date.now() + 15_000;
    const made = await issueCertificate(authority, {
      name: 'ada',
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(endsAtMs),
    });
    await writeFile(file('short.pem'), `${made.certificate}\n${made.key}`);
    const session = file('short-session');
    expect(await resume(file('short.pem'), '-sess_out', session)).toMatch(/^location: /im);
    await until(async () => Date.now() > endsAtMs + 1_000, 'it has ended');
    const later = await resume(file('short.pem'), '-sess_in', session);
    expect(later).toMatch(/^Reused[\s\S]*^HTTP/m);
    expect(later).not.toMatch(/^location: /im);
  });

  test('comes through a gateway process, and ends when the certificate is revoked', async () => {
    const eve = await issue('eve');
    const at = await freePort();
    const args = ['--bind', `https://127.0.0.1:${at}/`];
    await using gateway = await startGateway(hub, { args });
    expect(gateway.url).toBe(hub.url);
    expect(await open(['--cert', eve], at)).toContain('Hello, eve');
    expect(await open(['--cert', eve])).toContain('Hello, eve');

    // A session of TLS that began before is not gone on with.
    const session = file('session');
    expect(await resume(eve, '-sess_out', session)).toMatch(/^location: /im);
    expect(await resume(eve, '-sess_in', session)).toMatch(/^Reused[\s\S]*^location: /im);

    // A connection that is open could log in for ever.
    const [ofEve, ofAda] = await Promise.all([keepOpen(eve), keepOpen(await issue('ada'))]);
    const ended = once(ofEve, 'close');

    await publish(eve);
    await ended;
    expect(ofAda.closed).toBe(false);
    ofAda.destroy();
    await until(async () => !(await open(['--cert', eve])).includes('Hello'), 'the hub knows');
    await until(
      async () => !(await open(['--cert', eve], at)).includes('Hello'),
      'the gateway knows',
    );
    expect(await resume(eve, '-sess_in', session)).not.toMatch(/^Reused|^location: \/hub\/home/im);
    expect(await open(['--cert', await issue('ada')])).toContain('Hello, ada');
    expect(await open(['--cert', await issue('ada')], at)).toContain('Hello, ada');

    await writeFile(file('list.crl'), 'no list');
    const said = () => hub.logLines.map(({ msg }) => String(msg)).join('\n');
    await until(() => said().includes('revocation list cannot be used'), 'it is logged');
    expect(await open(['--cert', eve])).not.toContain('Hello');
  });
});
