import { execFile, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { Secret } from '../../src/platform/config/secret.ts';
import { createInternalAuthority } from '../../src/platform/internal-tls/internal-authority.ts';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { edgeService } from '../support/gateway-process.ts';
import { createHubFolder, type HubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { pathOf, requires } from '../support/requires.ts';
import { managedService, usersOpenServices } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';
import { issuedBy, selfSigned } from '../support/tls-front.ts';

/** What curl got and, behind it, the status. */
async function curl(...args: string[]): Promise<string> {
  const all = ['-sS', '--max-time', '20', '-w', ' %{http_code}', ...args];
  return (await promisify(execFile)(pathOf('curl'), all)).stdout;
}

/** What `openssl s_client` says of a connection, which the other side may end. */
async function handshake(port: number, ...args: string[]): Promise<string> {
  const child = spawn(
    pathOf('openssl'),
    ['s_client', '-connect', `127.0.0.1:${port}`, '-ign_eof', ...args],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  child.stdin.end('GET /hub/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  return (await Promise.all([text(child.stdout), text(child.stderr)])).join('\n');
}

describe.skipIf(!requires('openssl', 'curl'))('a hub with internal_ssl', () => {
  let folder: HubFolder;
  let hub: Awaited<ReturnType<HubFolder['start']>>;
  let internal = 0;
  const identity = () => ({
    cert: join(folder.directory, 'internal-ssl', 'gateway.pem'),
    ca: join(folder.directory, 'internal-ssl', 'gateway-ca.pem'),
  });

  beforeAll(async () => {
    internal = await freePort();
    folder = await createHubFolder({
      Hub: {
        hub_bind_url: `https://127.0.0.1:${internal}`,
        hub_connect_url: 'http://127.0.0.1:9',
        internal_ssl: true,
        gateways: 1,
        load_roles: [...usersOpenServices, ...edgeService.load_roles],
        services: [
          await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'public' }),
          ...edgeService.services,
        ],
      },
    });
    hub = await folder.start();
  });
  afterAll(() => folder?.[Symbol.asyncDispose]());

  test('its gateway and its commands come with a certificate', async () => {
    await until(
      async () => (await fetch(`${folder.url}services/app/x`)).status === 200,
      'the service answers',
    );
    const page = await fetch(`${folder.url}hub/login`);
    expect(page.status).toBe(200);
    expect(await folder.command(['reload'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`The hub (process ${hub.pid}) has reloaded`),
    });
    expect(await folder.command(['user', 'list'])).toMatchObject({ code: 0 });
    expect(hub.logged(/unreachable|does not lead to it/)).toEqual([]);
  });

  test('a caller without one, or with one of others, is refused in the handshake', async () => {
    const { cert, ca } = identity();
    const url = `https://127.0.0.1:${internal}/hub/health`;
    expect(await curl('--cacert', ca, '--cert', cert, url)).toMatch(/"ok".* 200$/);
    await expect(curl('--cacert', ca, url)).rejects.toThrow(/alert|reset|SSL/i);

    const own = await mkdtemp(join(tmpdir(), 'hub-internal-'));
    const foreign = selfSigned(['gateway']);
    const file = join(own, 'foreign.pem');
    for (const shown of [foreign, issuedBy(foreign, 'gateway')]) {
      await writeFile(file, Buffer.concat([shown.cert, shown.key]));
      await expect(curl('--cacert', ca, '--cert', file, url)).rejects.toThrow(/alert|reset|SSL/i);
    }
    for (const version of ['-tls1_2', '-tls1_3']) {
      expect(await handshake(internal, version)).not.toContain('HTTP/1.1');
      const known = await handshake(internal, version, '-cert', cert, '-CAfile', ca);
      expect(known).toMatch(
        /HTTP\/1\.1 200[\s\S]*Verify return code: 0|Verify return code: 0[\s\S]*HTTP\/1\.1 200/,
      );
    }
    // Plain http is not read at all.
    await expect(fetch(`http://127.0.0.1:${internal}/hub/health`)).rejects.toThrow();
  });

  test('it does not start where others could put their own certificates in the place of these', async () => {
    await using open = await createHubFolder({
      Hub: {
        hub_bind_url: `https://127.0.0.1:${await freePort()}`,
        hub_connect_url: 'http://127.0.0.1:9',
        internal_ssl: true,
      },
    });
    const place = join(open.directory, 'internal-ssl');
    await mkdir(place);
    await chmod(place, 0o777);
    const { code, stderr } = await open.run(['start']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /Hub\.internal_certs_location: .*internal-ssl can be written to by other/,
      ),
    ]);
    expect(await readdir(place)).toEqual([]);
  });

  test('what it gives out can be read by its account alone, and cannot pass for the hub', async () => {
    const { cert, ca } = identity();
    for (const file of [cert, ca]) expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder.directory, 'internal-ssl'))).mode & 0o777).toBe(0o700);
    const port = await freePort();
    const server = spawn(
      pathOf('openssl'),
      ['s_server', '-accept', `127.0.0.1:${port}`, '-cert', cert, '-key', cert, '-www'],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    );
    let said = '';
    server.stdout.on('data', (chunk) => {
      said += chunk;
    });
    await until(() => said.includes('ACCEPT'), 'openssl listens');
    try {
      const args = [
        'gateway',
        '--hub',
        `https://127.0.0.1:${port}`,
        '--bind',
        'http://127.0.0.1:0',
      ];
      await using gateway = spawnHubProcess([...args, '--log-level', 'debug'], {
        cwd: folder.directory,
        env: {
          HUB_GATEWAY_TOKEN: 'secret-of-the-edge',
          JUPYTERHUB_SSL_CERTFILE: cert,
          JUPYTERHUB_SSL_KEYFILE: cert,
          JUPYTERHUB_SSL_CLIENT_CA: ca,
        },
      });
      await until(() => /hub feed disconnected/.test(gateway.stderr()), 'it was refused');
      expect(gateway.stderr()).toMatch(/purpose/);
    } finally {
      server.kill();
    }
  });

  test('a gateway elsewhere takes the files of the hub', async () => {
    const { cert, ca } = identity();
    const bind = `http://127.0.0.1:${await freePort()}/`;
    const start = (env: Record<string, string>) =>
      spawnHubProcess(
        [
          'gateway',
          '--hub',
          `https://localhost:${internal}`,
          '--bind',
          bind,
          '--log-level',
          'debug',
        ],
        { cwd: folder.directory, env: { HUB_GATEWAY_TOKEN: 'token-of-the-edge', ...env } },
      );
    await using gateway = start({
      JUPYTERHUB_SSL_CERTFILE: cert,
      JUPYTERHUB_SSL_KEYFILE: cert,
      JUPYTERHUB_SSL_CLIENT_CA: ca,
    });
    await until(() => gateway.stdout().includes('The gateway is ready'), 'the gateway is ready');
    expect((await fetch(`${bind}services/app/x`)).status).toBe(200);
    expect((await fetch(`${bind}hub/api/`)).status).toBe(200);
    await using without = start({});
    await until(() => /hub feed disconnected/.test(without.stderr()), 'it was refused');
    expect(without.stdout()).toBe('');
  });
});

test('the authority is followed by another one, which is believed before it issues', async () => {
  const kept = new Map<string, string>();
  let now = Date.UTC(2026, 0, 1);
  const open = () =>
    createInternalAuthority({
      settings: {
        find: async (key) => kept.get(key),
        set: async (key, value) => void kept.set(key, value),
        async keep(key, value) {
          if (!kept.has(key)) kept.set(key, value);
          return kept.get(key) ?? '';
        },
      },
      secrets: [new Secret('s'.repeat(32))],
      now: () => now,
      log: pino({ level: 'silent' }),
    });
  const dayMs = 86_400_000;
  const isBelieved = (cert: string, ca: string) =>
    ca
      .split(/(?=-----BEGIN)/)
      .map((pem) => new X509Certificate(pem))
      .some(
        (each) => new X509Certificate(cert).checkIssued(each) && each.validToDate.getTime() > now,
      );
  const first = await open().issue('one', ['localhost']);
  expect([...kept.values()].join()).not.toContain('PRIVATE');
  let [former, days] = [first, 0];
  let changes = 0;
  // Each half year for twelve years: who renews now and who did so a while ago believe each other.
  for (; days < 12 * 365; days += 14) {
    now += 14 * dayMs;
    const next = await open().issue('other', ['localhost']);
    expect(isBelieved(next.cert, former.ca), `new one after ${days} days`).toBe(true);
    expect(isBelieved(former.cert, next.ca), `former one after ${days} days`).toBe(true);
    if (new X509Certificate(next.cert).issuer !== new X509Certificate(former.cert).issuer)
      changes += 1;
    former = next;
  }
  expect(changes).toBeGreaterThanOrEqual(2);
});

describe.skipIf(!hasPostgres() || !requires('openssl', 'curl'))(
  'instances with internal_ssl',
  () => {
    const cluster = usePostgres();
    let stack: AsyncDisposableStack;
    let here: TestHub;
    let there: TestHub;
    let client = '';

    beforeAll(async () => {
      stack = new AsyncDisposableStack();
      const authority = selfSigned(['authority.test']);
      const own = await mkdtemp(join(tmpdir(), 'hub-internal-'));
      const served = selfSigned(['hub.localhost']);
      await writeFile(join(own, 'certificate.pem'), served.cert);
      await writeFile(join(own, 'key.pem'), served.key, { mode: 0o600 });
      await writeFile(join(own, 'authority.pem'), authority.cert);
      const mine = issuedBy(authority, 'ada');
      client = join(own, 'client.pem');
      await writeFile(client, Buffer.concat([mine.cert, mine.key]));
      const shared = {
        database_url: await cluster().createDatabase(),
        hub_connect_url: 'https://hub.localhost/',
        internal_ssl: true,
        public_url: 'https://hub.localhost/',
        certificates: [{ certificate: join(own, 'certificate.pem'), key: join(own, 'key.pem') }],
        client_authorities: join(own, 'authority.pem'),
        load_roles: usersOpenServices,
        services: [
          await managedService('app', 'fixtures/apps/gateway-app.cjs', {
            access: 'public',
            limits: { client_certificate: 'required' },
          }),
        ],
      };
      const start = async (machineId: string) => {
        const internal = await freePort();
        const Hub = {
          ...shared,
          bind_url: `https://127.0.0.1:${await freePort()}/`,
          hub_bind_url: `https://127.0.0.1:${internal}`,
          // Leads to this machine, and is no address of one machine alone.
          instance_url: `https://0.0.0.0:${internal}`,
          trusted_alt_names: ['0.0.0.0'],
        };
        return stack.use(await createTestHub({ Hub }, { machineId }));
      };
      here = await start('machine-a');
      there = await start('machine-b');
    });
    afterAll(() => stack?.disposeAsync());

    const portOf = (hub: TestHub) => (hub.hub.publicServer.address() as AddressInfo).port;
    const open = (hub: TestHub, ...args: string[]) =>
      curl(
        ...['-k', '--connect-to', `::127.0.0.1:${portOf(hub)}`, ...args],
        'https://hub.localhost/services/app/x',
      );

    test('pass on the certificate of a visitor, and none that is claimed', async () => {
      const der = new X509Certificate(await readFile(client)).raw.toString('base64');
      const isReady = async (hub: TestHub) => (await open(hub, '--cert', client)).endsWith(' 200');
      await until(() => isReady(here), 'the service is ready');
      await until(() => isReady(there), 'the other instance reaches it');
      const forged = ['-H', `Client-Cert: :${der}:`, '-H', 'Client_Cert: forged'];
      for (const hub of [here, there]) {
        const seen = await open(hub, '--cert', client, '-H', 'Client-Cert: :forged:');
        expect(seen).toContain(`"client-cert":":${der}:"`);
        expect(seen).not.toContain('forged');
        for (const sent of [forged, [...forged, '-H', 'X-Hub-Hop: forged.forged']]) {
          expect(await open(hub, ...sent)).toMatch(/needs a certificate.* 403$/s);
        }
      }
      const socket = new WebSocket(`wss://127.0.0.1:${portOf(there)}/services/app/x`, {
        cert: await readFile(client),
        key: await readFile(client),
        rejectUnauthorized: false,
        headers: { host: 'hub.localhost', origin: 'https://hub.localhost' },
      });
      const [said] = await once(socket, 'message');
      expect(String(said)).toContain(`"client-cert":":${der}:"`);
      socket.terminate();
      const messages = [here, there].flatMap((hub) => hub.logLines).map(({ msg }) => msg);
      expect(messages.filter((msg) => /unreachable|does not lead/.test(String(msg)))).toEqual([]);
    });
  },
);
