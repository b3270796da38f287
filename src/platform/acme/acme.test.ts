import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createSecureContext, createServer as createTlsServer } from 'node:tls';
import { inspect } from 'node:util';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { memorySpace } from '../../../test/support/memory-space.ts';
import { hasPebble, startPebble } from '../../../test/support/pebble.ts';
import { requires } from '../../../test/support/requires.ts';
import { until } from '../../../test/support/test-hub.ts';
import { selfSigned } from '../../../test/support/tls-front.ts';
import { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import type { KeyPair } from '../http/tls/certificate-source.ts';
import { type AcmeOptions, startAcmeCertificates } from './acme-certificates.ts';
import { createAcmeStore, type StoredCertificate } from './acme-store.ts';
import { createResponder, findersOf } from './challenges.ts';
import { runDnsCommand } from './dns-command.ts';

let opened = new AsyncDisposableStack();
afterEach(async () => {
  await opened.disposeAsync();
  opened = new AsyncDisposableStack();
});

const dayMs = 86_400_000;
/** Pebble's certificates live for five years. */
const lifeMs = 5 * 365 * dayMs;

/** What instances share, and an authority. */
async function startWorld({
  names = ['hub.example.org', 'wiki.example.org'],
  challenge = 'http-01',
  dnsScript = '',
  externalAccounts,
}: {
  readonly names?: readonly string[];
  readonly challenge?: 'http-01' | 'tls-alpn-01' | 'dns-01';
  readonly dnsScript?: string;
  readonly externalAccounts?: Readonly<Record<string, string>>;
} = {}) {
  const pebble = opened.use(await startPebble(externalAccounts && { externalAccounts }));
  const settings = new Map<string, string>();
  const shared = { http: memorySpace<string>(), tls: memorySpace<KeyPair>() };
  const claims = memorySpace<string>();
  const command = [process.execPath, '-e', dnsScript, '{action}', '{name}', '{value}'];
  const environment = { ...process.env, DNS_URL: pebble.dnsUrl };
  const world = {
    pebble,
    shared,
    settings,
    names,
    stop: new AbortController(),
    skippedMs: 0,
    /** Requests of all instances, without those that were sent again. */
    asked: [] as string[],
    answer: undefined as ((url: string, init?: RequestInit) => Response | undefined) | undefined,
    logged: [] as Record<string, unknown>[],
    storeOf: (secret: string) =>
      createAcmeStore(
        {
          find: async (key) => settings.get(key),
          set: async (key, value) => void settings.set(key, value),
        },
        createSealer([new Secret(secret.repeat(32))], 'certificate'),
      ),
    startInstance(given: Partial<AcmeOptions['acme']> & { secret?: string } = {}) {
      const { secret = 'a', ...acme } = given;
      const instance = { served: [] as StoredCertificate[], renewed: 0 };
      const certificates = startAcmeCertificates({
        acme: {
          accept_terms: true,
          directory: pebble.directory,
          email: 'ops@example.org',
          challenge,
          external_account: undefined,
          ...acme,
        },
        names: () => world.names,
        isShared: true,
        store: world.storeOf(secret),
        responder: createResponder({ challenge, dns_command: command }, shared, environment),
        claims,
        now: () => Date.now() + world.skippedMs,
        onCertificate: (certificate) => instance.served.push(certificate),
        onRenewed: async () => {
          instance.renewed += 1;
          // The database may be away just then.
          throw new Error('not recorded');
        },
        log: pino({}, { write: (line: string) => void world.logged.push(JSON.parse(line)) }),
        stopping: world.stop.signal,
        fetch: async (url, init) => {
          world.asked.push(String(url).replace(/.*\/\/[^/]*/, ''));
          return world.answer?.(String(url), init) ?? (await pebble.fetch(url, init));
        },
      });
      opened.use(certificates);
      return Object.assign(instance, certificates);
    },
  };
  return world;
}

async function answerHttp({ shared, pebble }: Awaited<ReturnType<typeof startWorld>>) {
  const { answerHttpChallenge } = findersOf('http-01', shared);
  const server = createHttpServer(({ url = '' }, res) => {
    void answerHttpChallenge?.(url).then((answer) =>
      res.writeHead(answer === undefined ? 404 : 200).end(answer),
    );
  }).listen(pebble.ports.http, '127.0.0.1');
  opened.defer(() => void server.close());
  await once(server, 'listening');
}

function namesOf(certificate: StoredCertificate | undefined): string[] {
  const { subjectAltName = '' } = new X509Certificate(certificate?.certificate ?? '');
  return subjectAltName.split(', ').sort();
}

describe.skipIf(!hasPebble())('certificates by ACME', () => {
  test('are ordered by one instance and served by all, by http-01, and kept sealed', async () => {
    const world = await startWorld();
    await answerHttp(world);
    const instances = [world.startInstance(), world.startInstance(), world.startInstance()];
    await Promise.all(instances.map((each) => each.run()));
    await Promise.all(instances.map((each) => each.run()));
    const [first, ...others] = instances.map(({ served }) =>
      served.map((each) => each.certificate),
    );
    expect(first).toHaveLength(1);
    for (const other of others) expect(other).toEqual(first);
    expect(instances.map(({ renewed }) => renewed).sort()).toEqual([0, 0, 1]);
    expect(namesOf(instances[0]?.served[0])).toEqual([
      'DNS:hub.example.org',
      'DNS:wiki.example.org',
    ]);
    expect([...world.settings.values()].join()).not.toMatch(/PRIVATE|BEGIN/);
    expect(await world.storeOf('b').certificate()).toBeUndefined();
    // One may have other settings than another, and they must not take turns.
    const [one] = instances;
    world.names = ['hub.example.org', 'other.example.org'];
    await one?.run();
    expect(one?.served).toHaveLength(1);
    world.skippedMs = 3_601_000;
    await one?.run();
    expect(namesOf(one?.served[1])).toContain('DNS:other.example.org');
  });

  test('are renewed after two thirds of their life, also where the authority has lost the account', async () => {
    const world = await startWorld();
    await answerHttp(world);
    const instance = world.startInstance();
    await instance.run();
    world.skippedMs = lifeMs * 0.66;
    await instance.run();
    expect(instance.served).toHaveLength(1);
    await world.pebble.restart();
    world.skippedMs = lifeMs * 0.71;
    await instance.run();
    expect(instance.served).toHaveLength(2);
    // Another instance, which has just come.
    world.skippedMs = 0;
    const next = world.startInstance();
    await next.run();
    expect(next.served).toEqual([instance.served[1]]);
    // Its account was closed, and its cookie secret lost.
    let refusals = 0;
    world.answer = (url) => {
      if (!url.endsWith('sign-me-up') || refusals > 0) return undefined;
      refusals += 1;
      return problem(401, { type: 'urn:ietf:params:acme:error:unauthorized' });
    };
    const other = world.startInstance({ secret: 'b' });
    await other.run();
    expect([refusals, other.served.length]).toEqual([1, 1]);
  });

  test('are renewed when the authority says, and name the one that they replace', async () => {
    const world = await startWorld();
    await answerHttp(world);
    const ordered: unknown[] = [];
    let suggested = { start: Date.now() + 10 * dayMs, end: Date.now() + 11 * dayMs };
    world.answer = (url, init) => {
      if (url.endsWith('/order-plz')) {
        const { payload } = JSON.parse(String(init?.body)) as { payload: string };
        ordered.push(JSON.parse(Buffer.from(payload, 'base64url').toString()).replaces);
      }
      if (!url.includes('/renewal-info/')) return undefined;
      const suggestedWindow = {
        start: new Date(suggested.start).toISOString(),
        end: new Date(suggested.end).toISOString(),
      };
      return Response.json({ suggestedWindow }, { headers: { 'retry-after': '7200' } });
    };
    const { fetch } = world.pebble;
    const withInfo = Object.assign(world.pebble, {
      fetch: async (url: string, init?: RequestInit) => {
        const answer = await fetch(url, init);
        if (!url.endsWith('/dir')) return answer;
        const directory = (await answer.json()) as object;
        return Response.json({ ...directory, renewalInfo: new URL('/renewal-info', url).href });
      },
    });
    expect(withInfo).toBe(world.pebble);
    const instance = world.startInstance();
    await instance.run();
    await instance.run();
    const asked = () => world.asked.filter((path) => path.startsWith('/renewal-info/'));
    const [path = ''] = asked();
    expect(path).toMatch(/^\/renewal-info\/[\w-]{20,}\.[\w-]+$/);
    await instance.run();
    expect(asked()).toHaveLength(1);
    // It wants all certificates to be renewed at once, as after a mistake of its own.
    suggested = { start: Date.now() - dayMs, end: Date.now() - 1 };
    world.skippedMs = 7_199_000;
    await instance.run();
    expect([asked().length, instance.served.length]).toEqual([1, 1]);
    world.skippedMs = 7_201_000;
    await instance.run();
    expect([asked().length, instance.served.length]).toEqual([2, 2]);
    expect(new Set(ordered)).toEqual(new Set([undefined, path.split('/').at(-1)]));
  });

  test('are got with an account elsewhere, by tls-alpn-01', async () => {
    const key = Buffer.alloc(32, 'k').toString('base64url');
    const world = await startWorld({ challenge: 'tls-alpn-01', externalAccounts: { me: key } });
    const { shared, pebble } = world;
    const server = createTlsServer({
      ALPNProtocols: ['acme-tls/1'],
      SNICallback: (name, done) =>
        void shared.tls
          .get(name)
          .then((found) =>
            done(
              null,
              createSecureContext({ cert: found?.certificate ?? '', key: found?.key ?? '' }),
            ),
          ),
    }).listen(pebble.ports.tls, '127.0.0.1');
    opened.defer(() => void server.close());
    await once(server, 'listening');
    const instance = world.startInstance({ external_account: { id: 'me', key: new Secret('eA') } });
    await instance.run();
    expect((await world.storeOf('a').failure())?.reason).toMatch(/external account binding/i);
    const right = world.startInstance({ external_account: { id: 'me', key: new Secret(key) } });
    await right.run();
    expect(right.served).toHaveLength(1);
  });

  test('are got for a name and its wildcard by a command that writes records', async () => {
    const world = await startWorld({
      names: ['hub.example.org', '*.hub.example.org'],
      challenge: 'dns-01',
      dnsScript: `
        const [action, name, value] = process.argv.slice(1);
        const call = action === 'add' ? 'set-txt' : 'clear-txt';
        const body = JSON.stringify({ host: name + '.', value });
        fetch(process.env.DNS_URL + '/' + call, { method: 'POST', body });`,
    });
    const instance = world.startInstance();
    await instance.run();
    expect(namesOf(instance.served[0])).toEqual(['DNS:*.hub.example.org', 'DNS:hub.example.org']);
  });

  test('keep no hub that stops from ending, whatever their command does', async () => {
    const dnsScript = 'setInterval(() => {}, 1000)';
    const world = await startWorld({ challenge: 'dns-01', dnsScript });
    const instance = world.startInstance();
    const ended = instance.run();
    await until(() => world.asked.some((path) => path.startsWith('/authZ/')), 'a challenge');
    world.stop.abort();
    await ended;
    expect(await world.storeOf('a').failure()).toBeUndefined();
  });

  test.skipIf(!requires('openssl'))('that are not of the key are not taken', async () => {
    const world = await startWorld();
    await answerHttp(world);
    const { cert } = selfSigned(['hub.example.org']);
    world.answer = (url) => (/certZ/i.test(url) ? new Response(cert) : undefined);
    const instance = world.startInstance();
    await until(
      () => world.logged.some(({ msg }) => /no certificate/.test(String(msg))),
      'it fails',
    );
    expect(JSON.stringify(world.logged)).toContain('is not the key of the certificate');
    expect(instance.served).toEqual([]);
  });

  test('that cannot be got: says what was tried, waits longer each time, and serves the former', async () => {
    const world = await startWorld();
    const store = world.storeOf('a');
    const orders = () => world.asked.filter((path) => path === '/dir').length;
    const instance = world.startInstance();
    await instance.run();
    const failure = await store.failure();
    expect(failure?.reason).toMatch(
      /could not check (hub|wiki)\.example\.org by http-01: .*connection refused.*; this machine gets no answer from http:\/\/\1\.example\.org\/\.well-known\/acme-challenge\//,
    );
    await instance.run();
    expect(orders()).toBe(1);
    // The authority wants more time than that.
    world.answer = () =>
      problem(429, { type: 'urn:ietf:params:acme:error:rateLimited', detail: 'too many' }, 86_400);
    world.skippedMs = 151_000;
    await instance.run();
    const limited = await store.failure();
    expect([orders(), limited?.count]).toEqual([2, 2]);
    expect(limited?.reason).toContain('answers 429; too many');
    expect((limited?.nextAt ?? 0) - (limited?.at ?? 0)).toBeGreaterThanOrEqual(dayMs);
    // Other settings are tried at once.
    world.answer = () => {
      throw Object.assign(new TypeError('fetch failed'), { cause: new Error('no route to host') });
    };
    await world.startInstance({ email: 'other@example.org' }).run();
    expect((await store.failure())?.reason).toMatch(/\/dir gives no answer: no route to host$/);
    expect((await store.failure())?.count).toBe(1);
    world.answer = undefined;
    await answerHttp(world);
    world.skippedMs += 300_000;
    const mended = world.startInstance({ email: 'other@example.org' });
    await mended.run();
    expect([mended.served.length, await store.failure()]).toEqual([1, undefined]);
  });
});

function problem(status: number, body: object, retryAfterSeconds?: number): Response {
  const headers = new Headers({ 'content-type': 'application/problem+json' });
  if (retryAfterSeconds !== undefined) headers.set('retry-after', String(retryAfterSeconds));
  return Response.json(body, { status, headers });
}

describe('a command that changes DNS records', () => {
  const change = { action: 'add', name: '_acme-challenge.hub.test', value: 'v' } as const;
  const run = (script: string, timeoutMs = 60_000) =>
    runDnsCommand([process.execPath, '-e', script, '{name}={value}'], change, {
      environment: process.env,
      timeoutMs,
    });

  test.each([
    [
      'fails',
      'console.error(process.argv[1]); process.exit(3)',
      'failed with exit code 3: _acme-challenge.hub.test=v',
    ],
    [
      'writes without end',
      'for (;;) require("fs").writeSync(1, "x".repeat(9999))',
      'wrote more than 64 KiB and was killed',
    ],
    ['is killed', 'process.kill(process.pid, "SIGTERM")', 'was ended by SIGTERM'],
  ])('and %s is an error in words', async (_, script, said) => {
    await expect(run(script)).rejects.toThrow(said);
    const error: unknown = await run(script).catch((thrown: unknown) => thrown);
    expect(inspect(error)).not.toContain(JSON.stringify(script).slice(1, 20));
  });

  test('and hangs is killed, with what it has started out of the way', async () => {
    const script = 'require("child_process").spawn("sleep", ["5"], { stdio: "inherit" })';
    await expect(run(script, 500)).rejects.toThrow('did not end within 0.5 s and was killed');
    await expect(runDnsCommand(['/nowhere/dns'], change, { environment: {} })).rejects.toThrow(
      '(/nowhere/dns, add _acme-challenge.hub.test) was not found',
    );
  });
});
