import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { createTestHub } from '../support/test-hub.ts';

const proxySecret = 'what only the proxy knows';
const fromProxy = { 'x-hub-proxy-secret': proxySecret };

const behindProxy = (trusted: readonly string[]) => ({
  Hub: { authenticator_class: 'header', trusted_proxies: trusted },
  HeaderAuthenticator: {
    user_header: 'X-Remote-User',
    logout_url: '/outpost/sign_out',
    secret: proxySecret,
  },
});

test("a trusted proxy's header logs people in and leads where they were going", async () => {
  await using hub = await createTestHub(behindProxy(['127.0.0.1']));
  const browser = new FakeBrowser();
  const answer = await browser.request(`${hub.url}hub/login?next=%2Fhub%2Ftoken`, {
    headers: { ...fromProxy, 'x-remote-user': 'Ada' },
  });
  expect(answer.headers.location).toBe('/hub/token');
  expect((await browser.request(`${hub.url}hub/home`)).body).toContain('Hello, ada');
  const out = await browser.request(`${hub.url}hub/logout`);
  expect(out.headers['refresh']).toBe('0;url=/outpost/sign_out');
  expect(out.body).toContain('href="/outpost/sign_out"');
});

test('the same header from any other address is ignored', async () => {
  await using hub = await createTestHub(behindProxy(['192.0.2.1']));
  const browser = new FakeBrowser();
  const answer = await browser.request(`${hub.url}hub/login`, {
    headers: { ...fromProxy, 'x-remote-user': 'ada', 'x-forwarded-for': '192.0.2.1' },
  });
  expect(answer.status).toBe(200);
  expect(browser.cookieNames()).not.toContain('hub-session-id');
});

test('a header that comes twice is refused with an explanation', async () => {
  await using hub = await createTestHub(behindProxy(['127.0.0.1']));
  const outgoing = request(`${hub.url}hub/login`, {
    headers: { ...fromProxy, 'X-Remote-User': ['admin', 'ada'], accept: 'text/html' },
  });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const body = (await response.toArray()).join('');
  expect(response.statusCode).toBe(403);
  expect(body).toContain('contradicting names');
  expect(response.headers['set-cookie']?.join() ?? '').not.toContain('hub-session-id');
});

test('a program on this machine cannot name a user, nor run a hub that would believe it', async () => {
  await using hub = await createTestHub(behindProxy(['127.0.0.1']));
  const browser = new FakeBrowser();
  const answer = await browser.request(`${hub.url}hub/login`, {
    headers: { 'x-remote-user': 'ada', 'x-forwarded-user': 'ada' },
  });
  expect(answer.status).toBe(200);
  expect(browser.cookieNames()).not.toContain('hub-session-id');

  for (const range of ['127.0.0.1', '127.0.0.0/8', '127.1.2.3', '::1', '0.0.0.0/0']) {
    const open = { Hub: behindProxy([range]).Hub, HeaderAuthenticator: {} };
    await expect(createTestHub(open)).rejects.toThrow(/secret.*is needed|HeaderAuthenticator/s);
  }
});

test('a name that a proxy has signed logs in without a secret, and no other does', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  await using folder = await createHubFolder();
  await writeFile(
    `${folder.directory}/keys.json`,
    JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'a', alg: 'ES256' }] }),
  );
  await using hub = await createTestHub({
    Hub: { authenticator_class: 'header', trusted_proxies: ['127.0.0.1'] },
    HeaderAuthenticator: {
      jwt_header: 'X-Pomerium-Jwt-Assertion',
      jwt_keys: `${folder.directory}/keys.json`,
      jwt_issuer: 'hub.example.org',
      jwt_audience: 'hub.example.org',
    },
  });
  const logIn = async (audience: string) => {
    const token = await new SignJWT({ email: 'ada@example.org' })
      .setProtectedHeader({ alg: 'ES256', kid: 'a' })
      .setIssuer('hub.example.org')
      .setAudience(audience)
      .setExpirationTime('1m')
      .sign(privateKey);
    const browser = new FakeBrowser();
    const headers = { 'x-pomerium-jwt-assertion': token, 'x-forwarded-user': 'eve' };
    const { status } = await browser.request(`${hub.url}hub/login`, { headers });
    return { status, home: (await browser.request(`${hub.url}hub/home`)).body };
  };
  expect(await logIn('hub.example.org')).toMatchObject({
    status: 302,
    home: expect.stringContaining('Hello, ada@example.org'),
  });
  expect(await logIn('other.example.org')).toMatchObject({ status: 403 });
  const forger = new FakeBrowser();
  const headers = { 'x-forwarded-user': 'ada@example.org' };
  expect((await forger.request(`${hub.url}hub/login`, { headers })).status).toBe(200);
});
