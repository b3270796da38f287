import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { hasHaproxy, startHaproxy } from '../support/haproxy.ts';
import { type HubProcess, startHubProcess } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { hasRedis, useRedis } from '../support/redis.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { submitLogin, until } from '../support/test-hub.ts';
import { selfSigned } from '../support/tls-front.ts';

const page = readFileSync(join(projectDirectory, 'docs/how-to/run-several-hubs.md'), 'utf8');

function blockOf(language: string): string {
  const [, text] = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(page) ?? [];
  if (text === undefined) throw new Error(`the page has no block of ${language}`);
  return text;
}

/** The page's two machines on this one: its addresses become ports. */
interface Machines extends AsyncDisposable {
  readonly directory: string;
  readonly balancerPort: number;
  readonly ports: Readonly<Record<'hub-a' | 'hub-b', { public: number; internal: number }>>;
  /** Text of the page with the addresses of this machine. */
  adapt(text: string): string;
  start(name: 'hub-a' | 'hub-b'): Promise<HubProcess>;
}

const networks = { 'hub-a': '10.0.0.11', 'hub-b': '10.0.0.12' } as const;

async function setUp(databaseUrl: string, redisUrl: string): Promise<Machines> {
  const directory = mkdtempSync(join(tmpdir(), 'several-hubs-'));
  const balancerPort = await freePort();
  const servicePort = await freePort();
  const ports = {
    'hub-a': { public: await freePort(), internal: await freePort() },
    'hub-b': { public: await freePort(), internal: await freePort() },
  };
  const { key, cert } = selfSigned(['hub.localhost']);
  writeFileSync(join(directory, 'hub.key'), key);
  writeFileSync(join(directory, 'hub.pem'), cert);
  writeFileSync(join(directory, 'hub.both.pem'), Buffer.concat([cert, key]));
  const running = new Set<HubProcess>();

  function adapt(text: string): string {
    let adapted = text
      .replaceAll('/etc/ssl/hub.example.org', `${directory}/hub`)
      .replaceAll('https://hub.example.org', `https://hub.localhost:${balancerPort}`)
      .replaceAll('hub.example.org', 'hub.localhost')
      .replaceAll('/opt/hub/', `${projectDirectory}/`)
      .replaceAll('127.0.0.1:9000', `127.0.0.1:${servicePort}`)
      .replaceAll('10.0.0.10', '127.0.0.1');
    for (const [name, address] of Object.entries(networks)) {
      const { public: publicPort, internal } = ports[name as keyof typeof ports];
      adapted = adapted
        .replaceAll(`${address}:8000`, `127.0.0.1:${publicPort}`)
        .replaceAll(`${address}:8080`, `127.0.0.1:${internal}`);
    }
    return adapted;
  }

  const env = {
    HUB_DATABASE_URL: databaseUrl,
    HUB_KEYV_URL: redisUrl,
    HUB_COOKIE_SECRET: randomBytes(32).toString('hex'),
  };
  // The page sets these variables, and no others.
  expect([...page.matchAll(/^(HUB_\w+)=/gm)].map(([, name]) => name)).toEqual(Object.keys(env));

  return {
    directory,
    balancerPort,
    ports,
    adapt,
    async start(name) {
      const folder = join(directory, name);
      mkdirSync(folder, { recursive: true });
      const text = blockOf('jsonc').replace(/^\/\/.*$/m, '');
      const ofMachine = text.replaceAll('hub-a', name).replaceAll('10.0.0.11', networks[name]);
      const config = JSON.parse(adapt(ofMachine)) as Record<string, Record<string, unknown>>;
      const file = join(folder, 'hub.config.json');
      // The page leaves the authenticator to the reader: this one needs nothing else.
      config['Hub'] = { ...config['Hub'], authenticator_class: 'dummy' };
      config['DummyAuthenticator'] = { password: 'test' };
      config['Authenticator'] = { ...config['Authenticator'], allow_all: true };
      writeFileSync(file, JSON.stringify(config));
      const hub = await startHubProcess(['start', '--config', file], { cwd: folder, env });
      running.add(hub);
      return hub;
    },
    async [Symbol.asyncDispose]() {
      for (const hub of running) await hub[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function startNginx(machines: Machines): Promise<AsyncDisposable> {
  const { directory, balancerPort } = machines;
  const file = join(directory, 'nginx.conf');
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
    events {} http { access_log off;
    ${folders.map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
    ${machines.adapt(blockOf('nginx')).replace('listen 443', `listen 127.0.0.1:${balancerPort}`)} }`,
  );
  const nginx = spawn(pathOf('nginx'), ['-c', file, '-p', directory], { stdio: 'ignore' });
  return {
    async [Symbol.asyncDispose]() {
      nginx.kill('SIGTERM');
      if (nginx.exitCode === null && nginx.signalCode === null) await once(nginx, 'exit');
    },
  };
}

async function startDocumentedHaproxy(machines: Machines): Promise<AsyncDisposable> {
  const { balancerPort } = machines;
  const configuration = machines.adapt(blockOf('haproxy'));
  return await startHaproxy(configuration.replace('bind :443', `bind 127.0.0.1:${balancerPort}`), [
    balancerPort,
  ]);
}

const balancers = [
  { name: 'nginx', isThere: requires('nginx', 'openssl'), start: startNginx },
  { name: 'HAProxy', isThere: hasHaproxy(), start: startDocumentedHaproxy },
] as const;

describe.skipIf(!hasPostgres() || !hasRedis())('two hubs as the documentation sets them up', () => {
  const cluster = usePostgres();
  const redis = useRedis();

  test.for(balancers.filter(({ isThere }) => isThere))(
    'go on behind $name when either is killed, and are restarted one after the other',
    async ({ start }) => {
      await using machines = await setUp(await cluster().createEmptyDatabase(), redis().url);
      const hubs = {
        'hub-a': await machines.start('hub-a'),
        'hub-b': await machines.start('hub-b'),
      };
      await using _balancer = await start(machines);
      const url = `https://hub.localhost:${machines.balancerPort}/`;
      const browser = new FakeBrowser();
      const greets = async () => {
        const answer = await browser.open(`${url}services/whoami/`).catch(() => undefined);
        return answer?.status === 200 && answer.body.includes('ada');
      };
      await until(async () => {
        const answer = await submitLogin(browser, url, 'ada', 'test').catch(() => undefined);
        return answer?.status === 302;
      }, 'ada logs in');
      await until(greets, 'the service greets ada');

      for (const name of ['hub-a', 'hub-b'] as const) {
        hubs[name].signal('SIGKILL');
        await hubs[name].exited;
        await until(greets, `the service greets ada without ${name}`);
        hubs[name] = await machines.start(name);
      }
      for (const name of ['hub-a', 'hub-b'] as const) {
        hubs[name].signal('SIGTERM');
        expect(await hubs[name].exited).toBe(0);
        await until(greets, `the service greets ada while ${name} restarts`);
        hubs[name] = await machines.start(name);
        const ready = await fetch(`http://127.0.0.1:${machines.ports[name].public}/hub/ready`);
        expect(ready.status).toBe(200);
      }
    },
  );
});
