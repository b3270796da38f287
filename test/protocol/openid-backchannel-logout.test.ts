import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { beforeEach, expect, test, vi } from 'vitest';
import { answerNames } from '../support/resolver.ts';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

/** OpenID Connect Back-Channel Logout 1.0, incorporating errata set 1. */
let hub: AuthorizationServerHarness;
/** Requests that the clients got; `status` is how they answer. */
let heard: { path: string; headers: IncomingHttpHeaders; form: URLSearchParams }[];
let status: number;
/** A client that registered itself, at a name whose addresses are its own to say. */
const outside = {
  name: 'outside',
  secret: 'outside-secret-0123456789',
  info: { registered_by: 'ada' },
};
/** Beginning of the path of a client that closes the connection. */
let away: string;

beforeEach(async () => {
  heard = [];
  status = 200;
  away = 'nobody';
  const server = createServer((request, answer) => {
    void text(request).then((sent) => {
      const form = new URLSearchParams(sent);
      heard.push({ path: request.url ?? '', headers: request.headers, form });
      if (request.url?.startsWith(away)) return void request.socket.destroy();
      answer.writeHead(request.url === '/moved' ? 200 : status, { location: '/moved' }).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  hub = await startAuthorizationServer({
    services: [
      { ...wiki, logoutUrl: `${url}/wiki?logout` },
      { ...forum, logoutUrl: `${url}/forum`, idTokenAlgorithm: 'ES256' },
      { ...outside, logoutUrl: url.replace('127.0.0.1', 'rebound.test') },
    ],
  });
  return async () => {
    await hub[Symbol.asyncDispose]();
    server.closeAllConnections();
    server.close();
  };
});

/** A browser whose user has logged in at one client or more, and the ID tokens that these got. */
async function logIn(clients = [wiki], scope = 'openid') {
  const browser = await hub.login('ada');
  const idTokens = [];
  for (const { name, secret } of clients) {
    const code = await hub.obtainCode(browser, { client_id: `service-${name}`, scope });
    const form = { grant_type: 'authorization_code', code };
    const answer = await hub.post('token', form, basic(`service-${name}`, secret));
    idTokens.push(((await answer.json()) as { id_token: string }).id_token);
  }
  return { browser, idTokens };
}

async function deliver(clients = hub.clients): Promise<void> {
  await using deliveries = hub.startDeliveries(clients);
  await deliveries.run();
}

const tokenOf = (index = 0) => heard[index]?.form.get('logout_token') ?? '';

test('§2.5 each client of a login that ends gets a form with a logout token, once', async () => {
  const { browser } = await logIn([wiki, forum]);
  await logIn();
  await deliver();
  expect(heard).toEqual([]);
  await hub.loginSessions.end(browser.sessionId);
  await deliver();
  await deliver();
  expect(heard.map(({ path }) => path).toSorted()).toEqual(['/forum', '/wiki?logout']);
  expect(heard[0]?.headers['content-type']).toBe('application/x-www-form-urlencoded');
  expect(hub.logoutOutcomes).toEqual(['delivered', 'delivered']);
});

test('§2.4 the token is signed as ID tokens are, with iss, sub, aud, iat, exp, jti, events and sid, and no nonce', async () => {
  const { browser, idTokens } = await logIn();
  await hub.loginSessions.end(browser.sessionId);
  await deliver();
  const keys = createRemoteJWKSet(new URL(hub.endpoint('jwks')));
  const { payload, protectedHeader } = await jwtVerify(tokenOf(), keys, {
    issuer: hub.issuer,
    audience: 'service-wiki',
    typ: 'logout+jwt',
    algorithms: ['RS256'],
  });
  expect(protectedHeader.kid).toBeTypeOf('string');
  expect(payload).toEqual({
    iss: hub.issuer,
    aud: 'service-wiki',
    sub: browser.user.id,
    sid: decodeJwt(idTokens[0] ?? '')['sid'],
    jti: expect.stringMatching(/^[\w-]{20,}$/),
    iat: expect.any(Number),
    exp: Number(payload.iat) + 120,
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  });
  expect(await hub.signingKeys.verify(tokenOf(), hub.issuer), 'as an ID token').toBeUndefined();
});

test.each([
  ['a user who is deleted', (id: string) => hub.users.delete(id)],
  ['a user who is suspended', (id: string) => hub.users.setSuspended(id, true)],
  [
    'a login that expires',
    () => hub.loginSessions.purgeExpired(new Date(Date.now() + 15 * 24 * 3600 * 1000)),
  ],
])('§2.7 tells of %s', async (_what, end) => {
  const { browser } = await logIn();
  await end(browser.user.id);
  await deliver();
  expect(decodeJwt(tokenOf()).sub).toBe(browser.user.id);
});

test('does not tell a client that does not use OpenID Connect', async () => {
  const { browser } = await logIn([wiki], 'identify');
  await hub.loginSessions.end(browser.sessionId);
  await deliver();
  expect(heard).toEqual([]);
});

test('§2.5 tries again what was not delivered, after a while that grows, also from another instance', async () => {
  const { browser } = await logIn();
  await hub.loginSessions.end(browser.sessionId);
  status = 503;
  await deliver();
  await deliver();
  expect(heard).toHaveLength(1);
  away = '/wiki';
  hub.skipSeconds(11);
  await deliver();
  hub.skipSeconds(11);
  await deliver();
  expect(heard).toHaveLength(2);
  away = 'nobody';
  status = 204;
  hub.skipSeconds(10);
  await deliver();
  expect(hub.logoutOutcomes).toEqual(['failed', 'failed', 'delivered']);
  hub.skipSeconds(3600);
  await deliver();
  expect(heard).toHaveLength(3);
  const [first, ...others] = heard.map((_, index) => decodeJwt(tokenOf(index)).jti);
  expect(others).not.toContain(first);
});

test('what an instance cannot tell, as it does not know the client yet, another does', async () => {
  const { browser } = await logIn();
  await hub.loginSessions.end(browser.sessionId);
  await deliver({ ...hub.clients, find: async () => undefined });
  expect(heard).toHaveLength(0);
  await deliver();
  expect(heard).toHaveLength(1);
});

test('§2.8 does not try again what the client refuses, and follows no redirect', async () => {
  const logins = [await logIn(), await logIn()];
  await hub.loginSessions.end(logins[0]?.browser.sessionId ?? '');
  status = 400;
  await deliver();
  await hub.loginSessions.end(logins[1]?.browser.sessionId ?? '');
  status = 307;
  await deliver();
  expect(hub.logoutOutcomes).toEqual(['refused', 'failed']);
  expect(heard.map(({ path }) => path)).toEqual(['/wiki?logout', '/wiki?logout']);
});

test('sends a client that registered itself nothing where its name has turned into a private address', async () => {
  answerNames(['127.0.0.1']);
  const { browser } = await logIn([outside]);
  await hub.loginSessions.end(browser.sessionId);
  await deliver();
  vi.restoreAllMocks();
  expect([heard, hub.logoutOutcomes]).toEqual([[], ['failed']]);
});

test('of several instances one tells of a login, and a client that is away does not hold up the others', async () => {
  const sessions: string[] = [];
  for (let count = 0; count < 12; count += 1) {
    sessions.push((await logIn([wiki, forum])).browser.sessionId);
  }
  await Promise.all(sessions.map((sessionId) => hub.loginSessions.end(sessionId)));
  away = '/wiki';
  await Promise.all([deliver(), deliver(), deliver()]);
  const delivered = heard.filter(({ path }) => path === '/forum');
  const ids = delivered.map(({ form }) => decodeJwt(form.get('logout_token') ?? '')['sid']);
  expect([ids.length, new Set(ids).size]).toEqual([12, 12]);
});

test('§2.1 both metadata documents say so', async () => {
  for (const name of ['openid-configuration', 'oauth-authorization-server']) {
    const answer = await hub.request(`${hub.issuer}/.well-known/${name}`);
    expect(await answer.json()).toMatchObject({
      end_session_endpoint: `${hub.issuer}/hub/logout`,
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
    });
  }
});
