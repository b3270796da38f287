import { generateKeyPairSync, randomUUID, sign as signBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, type JWTPayload, SignJWT } from 'jose';
import * as openidClient from 'openid-client';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { answerNames } from '../support/resolver.ts';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  refusalOf,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

/** JWT Profile for OAuth 2.0 Client Authentication, and OpenID Connect Core 1.0 §9: `private_key_jwt`. */
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
const { privateKey: ecKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

let hub: AuthorizationServerHarness;
/** Where the forum publishes its keys, and how it answers. */
let published: { status: number; body: string; asked: number };

beforeEach(async () => {
  published = {
    status: 200,
    body: JSON.stringify({ keys: [await exportJWK(publicKey)] }),
    asked: 0,
  };
  const server = createServer((_request, answer) => {
    published.asked += 1;
    answer.writeHead(published.status, { location: '/elsewhere' }).end(published.body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const keys = [
    { ...(await exportJWK(rsa.publicKey)), kid: 'rsa' },
    { ...(await exportJWK(small.publicKey)), kid: 'small' },
  ];
  const grants = ['client_credentials'] as const;
  hub = await startAuthorizationServer({
    services: [
      { ...wiki, jwks: { keys }, grants },
      { ...forum, jwksUri: `http://127.0.0.1:${port}/jwks`, grants },
      {
        name: 'outside',
        secret: 'outside-secret-0123456789',
        info: { registered_by: 'ada' },
        jwksUri: `http://rebound.test:${port}/jwks`,
        grants,
      },
    ],
  });
  await hub.roles.apply({
    save: [{ name: 'robots', description: '', scopes: ['list:users'], origin: 'api' }],
    assign: ['wiki', 'forum'].map((subjectName) => ({
      roleName: 'robots',
      subjectKind: 'service',
      subjectName,
      origin: 'api',
    })),
  });
  hub.database.announceChange({ kind: 'rights_changed' });
  return async () => {
    await hub[Symbol.asyncDispose]();
    server.close();
  };
});

const claimsOf = () => ({
  iss: 'service-wiki',
  sub: 'service-wiki',
  aud: hub.endpoint('token'),
  jti: randomUUID(),
  exp: Math.floor(Date.now() / 1000) + 60,
});

function sign(
  more: JWTPayload = {},
  { key = rsa.privateKey, alg = 'RS256', without = '' } = {},
): Promise<string> {
  const claims = Object.entries({ ...claimsOf(), ...more }).filter(([name]) => name !== without);
  const header = alg === 'RS256' ? { alg, kid: 'rsa' } : { alg };
  return new SignJWT(Object.fromEntries(claims)).setProtectedHeader(header).sign(key);
}

/** By hand, since the library refuses to. */
async function signSmall(): Promise<string> {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${encode({ alg: 'RS256', kid: 'small' })}.${encode(claimsOf())}`;
  return `${text}.${signBytes('sha256', Buffer.from(text), small.privateKey).toString('base64url')}`;
}

const ask = (client_assertion: string, more: Record<string, string> = {}, headers = {}) =>
  hub.post(
    'token',
    {
      grant_type: 'client_credentials',
      client_assertion,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      ...more,
    },
    headers,
  );

test('openid-client authenticates with its key', async () => {
  const client = await openidClient.discovery(
    new URL(hub.issuer),
    'service-wiki',
    {},
    openidClient.PrivateKeyJwt({
      key: await crypto.subtle.importKey(
        'pkcs8',
        rsa.privateKey.export({ type: 'pkcs8', format: 'der' }),
        { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
        false,
        ['sign'],
      ),
      kid: 'rsa',
    }),
    { execute: [openidClient.allowInsecureRequests] },
  );
  expect(client.serverMetadata().token_endpoint_auth_methods_supported).toContain(
    'private_key_jwt',
  );
  expect((await openidClient.clientCredentialsGrant(client)).access_token).toMatch(/^hub_/);
});

describe('§3 is accepted', () => {
  test.each<[string, () => JWTPayload]>([
    ['for the token endpoint', () => ({})],
    ['for the issuer', () => ({ aud: hub.issuer })],
    ['among several audiences', () => ({ aud: ['https://elsewhere.example', hub.issuer] })],
    ['with a clock a minute behind', () => ({ exp: Math.floor(Date.now() / 1000) - 50 })],
    ['with a clock a minute ahead', () => ({ nbf: Math.floor(Date.now() / 1000) + 50 })],
  ])('%s', async (_what, more) => {
    expect((await ask(await sign(more()))).status).toBe(200);
  });

  test('with the client_id beside it, and by keys that are published, which are fetched once', async () => {
    const claims = { iss: 'service-forum', sub: 'service-forum' };
    for (let count = 0; count < 2; count += 1) {
      const answer = await ask(await sign(claims, { key: ecKey, alg: 'ES256' }), {
        client_id: 'service-forum',
      });
      expect(answer.status).toBe(200);
    }
    expect(published.asked).toBe(1);
  });
});

describe('§3.1 is refused as invalid_client', () => {
  test.each<[string, () => Promise<string>]>([
    ['without jti, which says that it is used once', () => sign({}, { without: 'jti' })],
    ['without exp', () => sign({}, { without: 'exp' })],
    ['once it has expired', () => sign({ exp: Math.floor(Date.now() / 1000) - 61 })],
    ['valid for longer than an hour', () => sign({ exp: Math.floor(Date.now() / 1000) + 4000 })],
    ['before it is valid', () => sign({ nbf: Math.floor(Date.now() / 1000) + 100 })],
    ['for another server', () => sign({ aud: 'https://elsewhere.example' })],
    ['of another issuer', () => sign({ iss: 'service-forum' })],
    ['for another client', () => sign({ sub: 'service-forum', iss: 'service-forum' })],
    ['for an unknown client', () => sign({ sub: 'nobody', iss: 'nobody' })],
    ['signed with a key that is too small', () => signSmall()],
    ['signed with another key', () => sign({}, { key: ecKey, alg: 'ES256' })],
    [
      'unsigned',
      async () => `${btoa('{"alg":"none"}')}.${(await sign()).split('.')[1]}.`.replaceAll('=', ''),
    ],
    [
      'signed with the secret',
      () =>
        new SignJWT({})
          .setProtectedHeader({ alg: 'HS256' })
          .setSubject('service-wiki')
          .sign(Buffer.from(wiki.secret)),
    ],
    ['when it is no JWT', async () => 'none'],
  ])('%s', async (_what, assertion) => {
    expect(await refusalOf(await ask(await assertion()))).toEqual([401, 'invalid_client']);
  });

  test.each([60, -50])('the second time, %d seconds before it expires', async (seconds) => {
    const assertion = await sign({ exp: Math.floor(Date.now() / 1000) + seconds });
    const answers = await Promise.all([ask(assertion), ask(assertion)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test('with another client_id or an unknown type beside it', async () => {
    for (const more of [{ client_id: 'service-forum' }, { client_assertion_type: 'saml' }]) {
      const refused = await refusalOf(await ask(await sign(), more));
      expect(refused).toEqual([401, 'invalid_client']);
    }
  });

  test('where its keys cannot be fetched: an error, a redirect, too much', async () => {
    const claims = { iss: 'service-forum', sub: 'service-forum' };
    const good = published.body;
    for (const answer of [
      { status: 500 },
      { status: 302 },
      { body: `${good}${' '.repeat(70_000)}` },
    ]) {
      Object.assign(published, { status: 200, body: good }, answer);
      const assertion = await sign(claims, { key: ecKey, alg: 'ES256' });
      expect(await refusalOf(await ask(assertion))).toEqual([401, 'invalid_client']);
    }
  });

  test('where a client registered itself, and the name of its keys has turned into a private address', async () => {
    answerNames(['127.0.0.1']);
    const claims = { iss: 'service-outside', sub: 'service-outside' };
    const assertion = await sign(claims, { key: ecKey, alg: 'ES256' });
    expect(await refusalOf(await ask(assertion))).toEqual([401, 'invalid_client']);
    vi.restoreAllMocks();
    expect(published.asked).toBe(0);
  });
});

test('is refused beside another way to authenticate (RFC 6749 §2.3)', async () => {
  const inForm = await ask(await sign(), { client_secret: wiki.secret });
  expect(await refusalOf(inForm)).toEqual([400, 'invalid_request']);
  const inHeader = await ask(await sign(), {}, basic('service-wiki', wiki.secret));
  expect(await refusalOf(inHeader)).toEqual([400, 'invalid_request']);
});

test('a client with keys is not known by its secret', async () => {
  const form = { grant_type: 'client_credentials' };
  const answer = await hub.post('token', form, basic('service-wiki', wiki.secret));
  expect(await refusalOf(answer)).toEqual([401, 'invalid_client']);
});
