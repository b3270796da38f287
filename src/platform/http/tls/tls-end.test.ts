import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { pathOf, requires } from '../../../../test/support/requires.ts';
import { until } from '../../../../test/support/test-hub.ts';
import { createClientAddressReader } from '../request-address.ts';
import { createHeldCertificates } from './certificate-source.ts';
import { endOfList } from './read-certificate.ts';
import { createTlsEnd } from './tls-end.ts';

describe.skipIf(!requires('openssl'))('a connection with the certificate of a client', () => {
  let folder = '';
  const file = (name: string) => join(folder, name);
  const read = (name: string) => readFileSync(file(name), 'utf8');
  const openssl = (...args: string[]) =>
    execFileSync(pathOf('openssl'), args, { stdio: ['ignore', 'ignore', 'ignore'] });

  function make(name: string, issuer: string | undefined, isAuthority: boolean): void {
    const subject = ['-subj', `/CN=${name}`, '-nodes', '-keyout', file(`${name}.key`)];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
    const extensions = [
      '-addext',
      `basicConstraints=critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}`,
    ];
    const by =
      issuer === undefined ? [] : ['-CA', file(`${issuer}.pem`), '-CAkey', file(`${issuer}.key`)];
    const made = ['-days', '2', '-out', file(`${name}.pem`)];
    openssl('req', '-x509', ...curve, ...subject, ...extensions, ...by, ...made);
    if (!isAuthority) return;
    writeFileSync(file(`${name}.index`), '');
    writeFileSync(
      file(`${name}.cnf`),
      `[ca]\ndefault_ca=own\n[own]\ndatabase=${file(`${name}.index`)}\ncertificate=${file(`${name}.pem`)}\n` +
        `private_key=${file(`${name}.key`)}\ndefault_md=sha256\ndefault_crl_days=2\n`,
    );
  }

  /** What an authority has revoked, in a list that ends in so many seconds, or in two days. */
  function listOf(name: string, { revoked, seconds }: { revoked?: string; seconds?: number } = {}) {
    const words = ['ca', '-config', file(`${name}.cnf`)];
    if (revoked !== undefined) openssl(...words, '-revoke', file(`${revoked}.pem`));
    const ends = seconds === undefined ? [] : ['-crlsec', String(seconds)];
    openssl(...words, '-gencrl', ...ends, '-out', file('list.crl'));
    return read('list.crl');
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'hub-tls-end-'));
    make('root', undefined, true);
    make('middle', 'root', true);
    make('ada', 'middle', false);
    make('bob', 'root', false);
    make('served', undefined, false);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function startEnd(revocationLists: readonly string[]) {
    const certificates = createHeldCertificates();
    const served = { certificate: read('served.pem'), key: read('served.key') };
    const pair = { ...served, origin: 'served', names: ['served'], notAfter: new Date() };
    const hold = (lists: readonly string[]) =>
      certificates.hold([pair], { clientAuthorities: read('root.pem'), revocationLists: lists });
    hold(revocationLists);
    const clientOf = createClientAddressReader([]);
    const http = createHttpServer((request, response) => {
      response.end(clientOf(request).certificate === undefined ? 'as nobody' : 'as known');
    });
    const end = createTlsEnd({
      certificates,
      established: (socket) => void http.emit('connection', socket),
    });
    const server = createServer((socket) => end.receive(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const open: TLSSocket[] = [];
    return {
      hold,
      async open(name: string, options: ConnectionOptions = {}) {
        const chain = name === 'ada' ? read('ada.pem') + read('middle.pem') : read(`${name}.pem`);
        const socket = connect({
          port: (server.address() as AddressInfo).port,
          host: '127.0.0.1',
          rejectUnauthorized: false,
          cert: chain,
          key: read(`${name}.key`),
          maxVersion: 'TLSv1.2',
          ...options,
        });
        open.push(socket.on('error', () => undefined));
        socket.write('GET / HTTP/1.1\r\nHost: served\r\n\r\n');
        const [said] = (await once(socket, 'data')) as [Buffer];
        return { socket: socket.resume(), said: /as (\w+)/.exec(String(said))?.[1] };
      },
      [Symbol.dispose]() {
        for (const each of open) each.destroy();
        server.close();
        end[Symbol.dispose]();
      },
    };
  }

  test('ends when an authority between is revoked; that of others stays', async () => {
    using end = await startEnd([listOf('root'), listOf('middle')]);
    const [ada, bob] = [await end.open('ada'), await end.open('bob')];
    expect([ada.said, bob.said]).toEqual(['known', 'known']);
    const again = await end.open('ada', { session: ada.socket.getSession() });
    expect([again.socket.isSessionReused(), again.said]).toEqual([true, 'known']);
    const ended = Promise.all([once(ada.socket, 'close'), once(again.socket, 'close')]);
    end.hold([listOf('root', { revoked: 'middle' }), listOf('middle')]);
    await ended;
    expect(bob.socket.closed).toBe(false);
    expect((await end.open('ada', { session: ada.socket.getSession() })).said).toBe('nobody');
  });

  test('is not believed by a session of TLS that goes on when the list has ended', async () => {
    const list = listOf('root', { seconds: 3_600 });
    using end = await startEnd([list]);
    const { said, socket } = await end.open('bob');
    expect(said).toBe('known');
    const session = socket.getSession();
    expect((await end.open('bob', { session })).said).toBe('known');
    vi.useFakeTimers({ toFake: ['Date'], now: (endOfList(list) ?? 0) + 1_000 });
    onTestFinished(() => void vi.useRealTimers());
    const later = await end.open('bob', { session });
    expect([later.socket.isSessionReused(), later.said]).toEqual([true, 'nobody']);
    vi.useRealTimers();
    // OpenSSL has a clock of its own.
    end.hold([listOf('root', { seconds: 1 })]);
    await until(async () => (await end.open('bob')).said === 'nobody', 'the list has ended');
  });
});
