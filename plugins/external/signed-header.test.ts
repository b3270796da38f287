import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createTestHost } from '../../test/contract/testing.ts';
import { until } from '../../test/support/test-hub.ts';
import plugin from '../header.ts';

const issuer = 'https://team.cloudflareaccess.com';
const audience = 'the-hub-at-cloudflare';
const header = 'cf-access-jwt-assertion';

type Claims = Record<string, unknown>;

interface Issuer extends AsyncDisposable {
  readonly keysUrl: string;
  readonly publicKey: CryptoKey;
  isDown: boolean;
  /** Signs with the newest key, as Cloudflare Access and Pomerium do. */
  sign(claims?: Claims, protectedHeader?: object): Promise<string>;
  /** Begins to sign with another key, and publishes that one too. */
  rotate(): Promise<void>;
}

async function startIssuer(): Promise<Issuer> {
  const published: object[] = [];
  let current = await generateKeyPair('ES256');
  let kid = '';
  async function publish(): Promise<void> {
    kid = `key-${published.length}`;
    published.push({ ...(await exportJWK(current.publicKey)), kid, alg: 'ES256', use: 'sig' });
  }
  await publish();
  const server = createServer((_request, response) => {
    response.statusCode = made.isDown ? 503 : 200;
    response.end(JSON.stringify({ keys: published }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const made: Issuer = {
    keysUrl: `http://127.0.0.1:${port}/cdn-cgi/access/certs`,
    publicKey: current.publicKey,
    isDown: false,
    sign(claims = {}, protectedHeader = {}) {
      const now = Math.floor(Date.now() / 1000);
      const usual = { iss: issuer, aud: [audience], iat: now, exp: now + 300, sub: 'person-1' };
      const payload = { ...usual, email: 'ada@example.org', ...claims };
      const given = Object.entries(payload).filter(([, value]) => value !== undefined);
      return new SignJWT(Object.fromEntries(given))
        .setProtectedHeader({ alg: 'ES256', kid, typ: 'JWT', ...protectedHeader })
        .sign(current.privateKey);
    },
    async rotate() {
      current = await generateKeyPair('ES256');
      await publish();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
  return made;
}

let provider: Issuer;
beforeEach(async () => {
  provider = await startIssuer();
});
afterEach(() => provider[Symbol.asyncDispose]());

async function createAuthenticator(given: object = {}, surroundings: object = {}) {
  const host = await createTestHost({ trustedLocalAddress: '127.0.0.1', ...surroundings });
  const options = plugin.optionsSchema.parse({
    jwt_header: 'Cf-Access-Jwt-Assertion',
    jwt_keys: provider.keysUrl,
    jwt_issuer: issuer,
    jwt_audience: audience,
    allow_insecure_requests: true,
    ...given,
  });
  const authenticator = await plugin.create(options, host);
  const identify = (headers: Readonly<Record<string, string>>, isTrustedProxy = true) =>
    authenticator.identify({
      address: '192.0.2.1',
      peerAddress: '192.0.2.9',
      isTrustedProxy,
      userAgent: '',
      headers,
      signal: AbortSignal.timeout(300_000),
    });
  return { identify, host };
}

describe('a signed name', () => {
  test('of the issuer, for this hub, logs its user in', async () => {
    const { identify } = await createAuthenticator();
    expect(await identify({ [header]: await provider.sign() })).toEqual({
      outcome: 'authenticated',
      user: {
        name: 'ada@example.org',
        display: 'ada@example.org',
        info: { displayName: undefined, email: 'ada@example.org', isEmailVerified: true },
      },
    });
    expect(await identify({})).toEqual({ outcome: 'refused', reason: 'credentials' });
    expect(await identify({ [header]: await provider.sign() }, false)).toEqual({
      outcome: 'refused',
      reason: 'credentials',
    });
  });

  test('may be another claim, with groups that decide', async () => {
    const { identify } = await createAuthenticator({
      jwt_user_claim: 'custom.login',
      jwt_groups_claim: 'groups',
      admin_groups: ['admins'],
    });
    const token = await provider.sign({ custom: { login: 'ada' }, groups: ['admins', 'staff'] });
    // A header beside it counts for nothing.
    expect(await identify({ [header]: token, 'x-forwarded-user': 'eve' })).toMatchObject({
      user: { name: 'ada', groups: ['admins', 'staff'], admin: true },
    });
    const without = await provider.sign({ custom: { login: 'ada' }, groups: { admins: true } });
    expect(await identify({ [header]: without })).toMatchObject({ user: { admin: false } });
  });

  const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
  test.for<[string, () => Claims, object?]>([
    ['of another issuer', () => ({ iss: 'https://other.cloudflareaccess.com' })],
    ['for another audience', () => ({ aud: 'another app' })],
    ['for no audience', () => ({ aud: undefined })],
    ['that has expired', () => ({ exp: inSeconds(-60) })],
    ['that never expires', () => ({ exp: undefined })],
    ['of the future', () => ({ nbf: inSeconds(120) })],
    ['without a name', () => ({ email: undefined })],
    ['with a name that is no text', () => ({ email: ['ada@example.org'] })],
    ['of another kind', () => ({}), { typ: 'logout+jwt' }],
    ['of an unknown key', () => ({}), { kid: 'another' }],
  ])('%s is refused', async ([, claims, protectedHeader]) => {
    const { identify, host } = await createAuthenticator();
    const token = await provider.sign(claims(), protectedHeader);
    expect(await identify({ [header]: token })).toMatchObject({
      outcome: 'refused',
      reason: 'invalid_response',
    });
    expect(host.logged.join()).toContain('the token in cf-access-jwt-assertion is refused');
    expect(host.logged.join()).not.toContain(token.split('.')[2]);
  });

  test('without a signature, or with one by another key, is refused', async () => {
    const { identify } = await createAuthenticator();
    const [, payload = ''] = (await provider.sign()).split('.');
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = `${encode({ alg: 'none', typ: 'JWT' })}.${payload}.`;
    // With HS256 the published key would be the secret (RFC 8725 §2.1).
    const input = `${encode({ alg: 'HS256', kid: 'key-0', typ: 'JWT' })}.${payload}`;
    const mac = createHmac('sha256', await exportSPKI(provider.publicKey)).update(input);
    const confused = `${input}.${mac.digest('base64url')}`;
    await using foreignProcess = await startIssuer();
    const good = await provider.sign();
    for (const token of [
      unsigned,
      confused,
      await foreignProcess.sign(),
      'x',
      `${good}\n${good}`,
    ]) {
      expect(await identify({ [header]: token }), token).toMatchObject({
        outcome: 'refused',
        reason: 'invalid_response',
      });
    }
  });

  test('by a new key of the issuer is accepted soon', async () => {
    const { identify } = await createAuthenticator();
    expect(await identify({ [header]: await provider.sign() })).toMatchObject({ user: {} });
    await provider.rotate();
    await until(
      async () => (await identify({ [header]: await provider.sign() })).outcome === 'authenticated',
      'the new key is known',
    );
  });

  test('is refused while the keys cannot be had, and not after', async () => {
    provider.isDown = true;
    const { identify, host } = await createAuthenticator();
    const token = await provider.sign();
    expect(await identify({ [header]: token })).toMatchObject({ reason: 'provider' });
    expect(host.logged.join()).toContain('cannot be had');
    provider.isDown = false;
    expect(await identify({ [header]: token })).toMatchObject({ outcome: 'authenticated' });
  });

  test('can be checked by keys of a file', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'hub-keys-'));
    try {
      const keys = await (await fetch(provider.keysUrl)).text();
      await writeFile(join(directory, 'keys.json'), keys);
      const { identify } = await createAuthenticator({ jwt_keys: 'keys.json' }, { directory });
      expect(await identify({ [header]: await provider.sign() })).toMatchObject({ user: {} });
      const missing = createAuthenticator({ jwt_keys: 'none.json' }, { directory });
      await expect(missing).rejects.toThrow(/none\.json holds no key set/);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

test.each([
  [{ jwt_keys: undefined }, ['jwt_keys']],
  [{ jwt_issuer: undefined, jwt_audience: undefined }, ['jwt_issuer', 'jwt_audience']],
  [{ jwt_keys: 'http://keys.example.org/' }, ['jwt_keys']],
  [{ allow_insecure_requests: false }, ['jwt_keys']],
  [{ groups_header: 'X-Groups' }, ['groups_header']],
  [{ admin_groups: ['admins'] }, ['admin_groups']],
  [{ jwt_header: undefined }, ['jwt_keys', 'secret']],
  [{}, []],
])('with %j the options have problems in %j', async (given, options) => {
  const host = await createTestHost({ trustedLocalAddress: '127.0.0.1' });
  const parsed = plugin.optionsSchema.parse({
    jwt_header: header,
    jwt_keys: 'http://127.0.0.1:1/keys',
    jwt_issuer: issuer,
    jwt_audience: audience,
    allow_insecure_requests: true,
    ...given,
  });
  const found = plugin.findProblems?.(parsed, host) ?? [];
  expect(found.map(({ option }) => option)).toEqual(options);
});

test('the header of the token is one that no app gets to see', () => {
  for (const name of ['X-Pomerium-Jwt-Assertion', 'X-Goog-Iap-Jwt-Assertion', 'X-Hub-Login']) {
    expect(plugin.optionsSchema.safeParse({ jwt_header: name }).success, name).toBe(true);
  }
  expect(plugin.optionsSchema.safeParse({ jwt_header: 'X-Token' }).success).toBe(false);
});
