import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, readdir, writeFile } from 'node:fs/promises';
import { createServer as createWebServer } from 'node:http';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder, type HubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { startOidcProvider } from '../support/oidc-provider.ts';
import { hasPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { until } from '../support/test-hub.ts';
import { startTlsFront } from '../support/tls-front.ts';
import { startProxy } from '../support/web-servers.ts';

interface Finding {
  readonly check: string;
  readonly state: string;
  readonly detail: string;
  readonly fix?: string;
}

async function findingsOf(folder: HubFolder): Promise<{ code: number | null; found: Finding[] }> {
  const { code, stdout, stderr } = await folder.command(['doctor', '--json']);
  expect(stdout, stderr).toMatch(/^\[/);
  return { code, found: JSON.parse(stdout) as Finding[] };
}

interface Certificate {
  readonly names: readonly string[];
  readonly isTrusted?: boolean;
  readonly isGone?: boolean;
  readonly ageDays?: number;
}

const about = (found: readonly Finding[], check: string) =>
  found.find((each) => each.check === check);

describe('hub doctor', () => {
  test('finds nothing wrong with a fresh folder, and leaves it as it was', async () => {
    await using folder = await createHubFolder();
    const before = await readdir(folder.directory);
    const { code, stdout, stderr } = await folder.command(['doctor']);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^ok +database +SQLite .*hub start creates the tables$/m);
    expect(stdout).toMatch(/^ok +address of Hub.bind_url +\S+ is free$/m);
    expect(stdout).toMatch(/^skipped +public_url +no hub runs/m);
    expect(code).toBe(0);
    expect(await readdir(folder.directory)).toEqual(before);
  });

  test('knows the addresses of the hub that runs, and asks it by its public URL', async () => {
    await using folder = await createHubFolder();
    const hub = await folder.start();
    const { code, stdout } = await folder.command(['check', '--deep']);
    expect(stdout).toContain('is fine.');
    expect(stdout).toContain(`of the running hub (process ${hub.pid})`);
    expect(stdout).toMatch(/^ok +database +SQLite .*its schema has version \d+$/m);
    expect(stdout).toMatch(/^ok +public_url +\S+hub\/health answers$/m);
    expect(code).toBe(0);
    await fetch(`${folder.apiUrl}/oauth2/jwks`);
    const keys = async () => about((await findingsOf(folder)).found, 'keys of ID tokens');
    expect(await keys()).toMatchObject({ state: 'ok' });
    const secretFile = join(folder.directory, 'hub_cookie_secret');
    await writeFile(secretFile, randomBytes(32).toString('hex'));
    expect(await keys()).toMatchObject({ state: 'warning' });
  });

  test('says of each thing that is wrong what it is and how to fix it', async () => {
    await using folder = await createHubFolder();
    const [closed, taken] = [await freePort(), createServer().listen(0, '127.0.0.1')];
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    await folder.configure({
      Hub: {
        bind_url: `http://127.0.0.1:${port}/`,
        database_url: `postgresql://hub:very-secret@127.0.0.1:${closed}/hub`,
        keyv_url: `redis://:very-secret@127.0.0.1:${closed}`,
        authenticator_class: ['oidc', 'ldap', 'oauth2'],
        services: [{ name: 'wiki', url: `http://127.0.0.1:${closed}` }],
      },
      OIDCAuthenticator: {
        issuer: `http://127.0.0.1:${closed}`,
        client_id: 'hub',
        client_secret: 'very-secret',
        allow_insecure_requests: true,
      },
      LDAPAuthenticator: {
        url: `ldap://127.0.0.1:${closed}`,
        allow_insecure: true,
        bind_dn_template: 'uid={username},dc=example',
      },
      OAuth2Authenticator: {
        client_id: 'hub',
        client_secret: 'very-secret',
        authorize_url: `http://127.0.0.1:${closed}/authorize`,
        token_url: `http://127.0.0.1:${closed}/token`,
        userdata_url: `http://127.0.0.1:${closed}/me`,
        username_claim: 'name',
        allow_insecure_requests: true,
      },
    });
    const { code, found } = await findingsOf(folder);
    taken.close();
    expect(code).toBe(1);
    for (const check of [
      'database',
      'expiring state',
      'address of Hub.bind_url',
      'login with oidc',
      'service wiki',
    ]) {
      expect(about(found, check), check).toMatchObject({
        state: 'failed',
        fix: expect.any(String),
      });
    }
    expect(about(found, 'database')?.detail).toMatch(/refuses the connection/);
    expect(about(found, 'address of Hub.bind_url')?.detail).toContain(
      `pid ${process.pid} (${basename(process.argv0)}) holds the port ${port}`,
    );
    expect(about(found, 'login with oidc')).toMatchObject({
      detail: expect.stringContaining(
        `http://127.0.0.1:${closed}: the provider cannot be reached: `,
      ),
      fix: expect.stringContaining('OIDCAuthenticator'),
    });
    expect(about(found, 'login with ldap')?.detail).toMatch(`ldap://127.0.0.1:${closed}: `);
    expect(about(found, 'login with oauth2')?.detail).toMatch(
      `http://127.0.0.1:${closed}/authorize: `,
    );
    expect(JSON.stringify(found)).not.toContain('very-secret');
  });

  test('says first which services of the running hub fail, and where to read why', async () => {
    await using folder = await createHubFolder({
      Hub: {
        services: [
          { name: 'broken', command: ['sh', '-c', 'exit 3'] },
          { name: 'sleeper', command: ['sleep', '600'] },
        ],
      },
    });
    const idle = await folder.command(['doctor']);
    expect(idle.stdout).toMatch(/^skipped +managed services +no hub answers/m);
    await using _hub = await folder.start();
    let shown = idle;
    await until(async () => {
      shown = await folder.command(['doctor']);
      return shown.code === 1 && /^ok +service sleeper +ready since /m.test(shown.stdout);
    }, 'one fails and the other one is ready');
    expect(shown.stdout).toMatch(
      /^FAILED +service broken +(restarting|crash-looping) since \S+: .*code 3.*\n +to fix it: see what it wrote: (?:npx )?hub logs broken\n/,
    );
    expect(shown.stderr).toBe('One check failed.\n');
  });

  test('asks a provider without registering there', async () => {
    const port = await freePort();
    await using provider = await startOidcProvider({
      hubUrl: 'http://127.0.0.1:1/',
      port,
      registration: true,
    });
    await using folder = await createHubFolder();
    await folder.configure({
      Hub: { authenticator_class: 'oidc' },
      OIDCAuthenticator: { issuer: provider.issuer, allow_insecure_requests: true },
    });
    expect(about((await findingsOf(folder)).found, 'login with oidc')).toMatchObject({
      state: 'ok',
    });
    expect(await provider.requestsTo('/reg')).toBe(0);
    await provider.setBroken(true);
    const { code, found } = await findingsOf(folder);
    expect(about(found, 'login with oidc')).toMatchObject({ state: 'failed' });
    expect(code).toBe(1);
  });

  test.skipIf(!requires('faketime'))('compares the clock with that of a provider', async () => {
    await using provider = await startOidcProvider({ hubUrl: 'http://127.0.0.1:1/' });
    await using folder = await createHubFolder();
    await folder.configure({
      Hub: { authenticator_class: 'oidc' },
      OIDCAuthenticator: {
        issuer: provider.issuer,
        client_id: 'hub',
        client_secret: 'very-secret',
        allow_insecure_requests: true,
      },
    });
    // That a program on this machine tells the same time says nothing of the clock.
    expect(about((await findingsOf(folder)).found, 'clock')).toMatchObject({ state: 'skipped' });

    const clock = await createFakeClock(folder.directory);
    await clock.set(-90);
    const args = ['doctor', '--json', '--config', folder.configFile];
    await using early = spawnHubProcess(args, { cwd: folder.directory, env: clock.env });
    expect(await early.exited).toBe(0);
    const { origin } = new URL(provider.issuer);
    expect(about(JSON.parse(early.stdout()) as Finding[], 'clock')).toEqual({
      check: 'clock',
      state: 'warning',
      detail: expect.stringMatching(
        new RegExp(`^this machine is (89|9[01])\\.\\d s behind ${origin}$`),
      ),
      fix: expect.stringContaining('chrony'),
    });
  });

  test('looks at the engine of each spawner', async () => {
    await using folder = await createHubFolder();
    await folder.configure({
      Hub: { hub_connect_url: 'http://hub.example.org:8080' },
      Spawner: { class: ['docker', 'slurm', 'local-process'], cmd: ['server'] },
      DockerSpawner: { host: 'unix:///nowhere/docker.sock', image: 'busy:1' },
      SlurmSpawner: { bin_directory: folder.directory },
    });
    const { code, found } = await findingsOf(folder);
    expect(code).toBe(1);
    expect(about(found, 'spawner docker, engine')).toMatchObject({
      state: 'failed',
      detail: expect.stringMatching(/nowhere\/docker\.sock does not answer: its socket is not/),
      fix: expect.stringContaining('DockerSpawner.host'),
    });
    expect(about(found, 'spawner slurm, programs')).toMatchObject({
      state: 'failed',
      detail: expect.stringMatching(/^The program \S*sbatch is not there/),
      fix: expect.stringContaining('SlurmSpawner.bin_directory'),
    });
    expect(about(found, 'spawner local-process')).toMatchObject({ state: 'skipped' });
  });

  test.skipIf(!requires('openssl', 'faketime')).each([
    [
      'that no authority has signed',
      { names: ['localhost'] },
      /self-signed/,
      /NODE_EXTRA_CA_CERTS/,
    ],
    [
      'of another name',
      { names: ['other.example'], isTrusted: true },
      /altnames/,
      /get one for loc/,
    ],
    ['that has ended', { names: ['localhost'], isTrusted: true, ageDays: 3 }, /expired/, /^renew/],
    [
      'that is not there',
      { names: ['localhost'], isGone: true },
      /shows none: connect ECONNREFUSED/,
      /^start the hub, or the proxy there/,
    ],
  ] as const)('does not take a certificate %s', async (_what, certificate, detail, fix) => {
    const { names, isTrusted, isGone, ageDays = 0 }: Certificate = certificate;
    await using folder = await createHubFolder();
    const front = await startTlsFront(names, Number(new URL(folder.url).port));
    if (isGone === true) await front[Symbol.asyncDispose]();
    await using _front = front;
    await folder.configure({ Hub: { public_url: `https://localhost:${front.port}/` } });
    const authority = join(folder.directory, 'authority.pem');
    await writeFile(authority, front.certificate);
    const clock = await createFakeClock(folder.directory);
    await clock.set(ageDays * 86_400);
    const env = { ...clock.env, ...(isTrusted === true && { NODE_EXTRA_CA_CERTS: authority }) };
    const args = ['doctor', '--json', '--config', folder.configFile];
    await using doctor = spawnHubProcess(args, { cwd: folder.directory, env });
    expect(await doctor.exited).toBe(1);
    const found = JSON.parse(doctor.stdout()) as Finding[];
    expect(about(found, 'certificate')).toEqual({
      check: 'certificate',
      state: 'failed',
      detail: expect.stringMatching(detail),
      fix: expect.stringMatching(fix),
    });
    // One cause is told once.
    expect(about(found, 'public_url')).toMatchObject({ state: 'skipped' });
  });

  test('warns of files of the hub that every account may use', async () => {
    await using folder = await createHubFolder();
    await folder.command(['user', 'list']);
    await chmod(join(folder.directory, 'hub.sqlite'), 0o666);
    await chmod(folder.directory, 0o777);
    const { code, found } = await findingsOf(folder);
    expect(code).toBe(0);
    expect(found).toEqual(
      expect.arrayContaining([
        {
          check: 'file of Hub.database_url',
          state: 'warning',
          detail: expect.stringContaining('can be read or written by every account'),
          fix: expect.stringMatching(/^chmod o= .*hub\.sqlite\*$/),
        },
        {
          check: 'folder of Hub.database_url',
          state: 'warning',
          detail: expect.stringContaining('every account of this machine may replace what is in'),
          fix: `chmod o-w ${folder.directory}`,
        },
      ]),
    );
  });

  test('is not satisfied when something else answers at the public URL', async () => {
    await using folder = await createHubFolder();
    const page = 'text/html';
    let answer: [number, Record<string, string>, string] = [200, { 'content-type': page }, '<p>Hi'];
    const other = createWebServer((_request, response) => {
      const [status, headers, body] = answer;
      response.writeHead(status, headers).end(body);
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    await folder.configure({ Hub: { public_url: `http://127.0.0.1:${port}/` } });
    await folder.start();
    for (const [given, reported] of [
      [answer, 'is answered by something that is not the hub'],
      [[302, { location: 'https://login.example/' }, ''], 'with 302, to https://login.example/'],
    ] as const) {
      answer = [...given];
      const finding = about((await findingsOf(folder)).found, 'public_url');
      expect(finding).toMatchObject({
        state: 'failed',
        detail: expect.stringContaining(reported),
        fix: expect.stringContaining('Hub.public_url'),
      });
    }
    other.close();
  });
});

test.runIf(requires('nginx')).for([
  { extra: '', trusts: false, state: 'warning' },
  { extra: '', trusts: true, state: 'failed' },
  { extra: 'proxy_set_header X-Forwarded-Host $host;', trusts: false, state: 'ok' },
])(
  'hub doctor says whether a proxy passes on X-Forwarded-Host of its clients: $state',
  async (each) => {
    await using folder = await createHubFolder();
    await using front = await startProxy(folder.url.replace(/\/$/, ''), each.extra);
    await folder.configure({
      Hub: {
        public_url: `${front.url}/`,
        trusted_proxies: ['127.0.0.1'],
        trust_forwarded_host: each.trusts,
      },
    });
    await folder.start();
    const { found } = await findingsOf(folder);
    expect(about(found, 'public_url')).toMatchObject({ state: 'ok' });
    expect(about(found, 'forwarded host')).toMatchObject({
      state: each.state,
      ...(each.state !== 'ok' && { fix: expect.stringContaining('X-Forwarded-Host') }),
    });
  },
);

describe.skipIf(!hasPostgres() || !requires('faketime'))('hub doctor on PostgreSQL', () => {
  const cluster = usePostgres();

  test('compares the clocks and the versions of the schema', async () => {
    const url = await cluster().createEmptyDatabase();
    await using folder = await createHubFolder({ Hub: { database_url: url } });
    expect(about((await findingsOf(folder)).found, 'database')?.detail).toMatch(
      /^PostgreSQL 15\S* .*hub start creates the tables$/,
    );
    await folder.command(['user', 'list']);
    const { found } = await findingsOf(folder);
    expect(about(found, 'database')?.detail).toMatch(/its schema has version \d+$/);
    expect(about(found, 'clock')).toMatchObject({ state: 'ok' });

    const clock = await createFakeClock(folder.directory);
    await clock.set(90);
    const args = ['doctor', '--json', '--config', folder.configFile];
    await using late = spawnHubProcess(args, { cwd: folder.directory, env: clock.env });
    await late.exited;
    expect(about(JSON.parse(late.stdout()) as Finding[], 'clock')).toMatchObject({
      state: 'warning',
      detail: expect.stringMatching(/this machine is (89|90)\.\d s ahead of the database/),
    });
  });
});
