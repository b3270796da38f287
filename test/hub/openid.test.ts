import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { decodeJwt } from 'jose';
import * as openidClient from 'openid-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { usersOpenServices } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const app = {
  name: 'grafana',
  api_token: 'secret-of-the-service-grafana',
  oauth_redirect_uri: 'http://127.0.0.1:1/login/callback',
  oauth_id_token_alg: 'ES256',
  oauth_no_confirm: true,
};

const heard: string[] = [];
let logoutServer: Server;
beforeAll(async () => {
  logoutServer = createServer((request, answer) => {
    void text(request).then((form) => {
      heard.push(new URLSearchParams(form).get('logout_token') ?? '');
      answer.end();
    });
  }).listen(0, '127.0.0.1');
  await once(logoutServer, 'listening');
});
afterAll(() => logoutServer.close());

test('an app logs users in by the issuer, its id and its secret, and is told when the login ends', async () => {
  const { port } = logoutServer.address() as AddressInfo;
  const logoutUrl = `http://127.0.0.1:${port}/logout`;
  await using hub = await createPasswordHub(['ada'], {
    Hub: { services: [{ ...app, oauth_logout_url: logoutUrl }], load_roles: usersOpenServices },
  });
  const issuer = new URL(hub.url.replace(/\/$/, ''));
  const client = await openidClient.discovery(
    issuer,
    'service-grafana',
    { id_token_signed_response_alg: 'ES256' },
    openidClient.ClientSecretBasic(app.api_token),
    { execute: [openidClient.allowInsecureRequests, openidClient.enableNonRepudiationChecks] },
  );
  const expectedNonce = openidClient.randomNonce();
  const url = openidClient.buildAuthorizationUrl(client, {
    redirect_uri: app.oauth_redirect_uri,
    scope: 'openid profile email groups',
    nonce: expectedNonce,
  });
  const browser = await hub.logIn('ada', testPassword);
  const { location = '' } = (await browser.request(url.href)).headers;
  const tokens = await openidClient.authorizationCodeGrant(client, new URL(location), {
    expectedNonce,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  expect(claims).toMatchObject({ preferred_username: 'ada', groups: [], amr: ['pwd'] });
  expect(Number(claims?.['auth_time'])).toBeLessThanOrEqual(Number(claims?.iat));
  const { sub = '' } = claims ?? {};
  expect(await openidClient.fetchUserInfo(client, tokens.access_token, sub)).toMatchObject({
    preferred_username: 'ada',
  });
  await hub.api('/users/ada/sessions', 'admin-service-token', { method: 'DELETE' });
  await expect(openidClient.fetchUserInfo(client, tokens.access_token, sub)).rejects.toThrow();
  await until(() => heard.length > 0, 'the app is told');
  expect(decodeJwt(heard[0] ?? '')).toMatchObject({ sub, sid: claims?.['sid'] });
  const metrics = async () => (await hub.api('/metrics', 'admin-service-token')).text();
  const counted = 'hub_logout_deliveries_total{outcome="delivered"} 1';
  await until(async () => (await metrics()).includes(counted), 'it is counted');
  expect(await metrics()).toContain('hub_signing_keys{algorithm="ES256",state="active"} 1');
});

test('an app says who shall log in, in which language, and that they show again who they are', async () => {
  await using hub = await createPasswordHub(['ada'], {
    Hub: { services: [app], load_roles: usersOpenServices },
  });
  const authorize = (more: Record<string, string>) => {
    const request = {
      response_type: 'code',
      client_id: 'service-grafana',
      scope: 'openid',
      ...more,
    };
    return `${hub.url}hub/api/oauth2/authorize?${new URLSearchParams(request)}`;
  };
  const newBrowser = new FakeBrowser();
  const hints = { login_hint: 'ada"><b', ui_locales: 'de en' };
  const { location = '' } = (await newBrowser.request(authorize(hints))).headers;
  const loginForm = await newBrowser.request(new URL(location, hub.url).href);
  expect(loginForm.body).toContain('lang="de"');
  expect(loginForm.body).toContain('value="ada&quot;&gt;&lt;b"');
  expect((await newBrowser.request(`${hub.url}hub/login`)).body).toContain('lang="en"');

  const browser = await hub.logIn('ada', testPassword);
  const asked = await browser.request(authorize({ prompt: 'login' }));
  expect(asked.body).toContain('Confirm it’s you');
  const wrong = await submitTo(browser, asked, '/hub/confirm-login', { password: 'wrong' });
  expect(wrong.headers.location).toBeUndefined();
  const right = await submitTo(browser, wrong, '/hub/confirm-login', { password: testPassword });
  const back = await browser.request(new URL(right.headers.location ?? '', hub.url).href);
  expect(back.headers.location).toContain(`${app.oauth_redirect_uri}?code=`);

  const framed = await browser.request(authorize({ prompt: 'none', max_age: '0' }), {
    headers: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  });
  expect(framed.headers.location).toContain('error=login_required');
});

test('a command line is let in by a code that its user types on a page, and ends with that login', async () => {
  const services = [{ name: 'sync', oauth_public: true, oauth_grants: ['device', 'refresh'] }];
  await using hub = await createPasswordHub(['ada'], {
    Hub: { services, load_roles: usersOpenServices },
  });
  const client = await openidClient.discovery(
    new URL(hub.url.replace(/\/$/, '')),
    'service-sync',
    undefined,
    openidClient.None(),
    { execute: [openidClient.allowInsecureRequests] },
  );
  const ask = () => openidClient.initiateDeviceAuthorization(client, { scope: 'openid profile' });
  const [codes, others] = await Promise.all([ask(), ask()]);
  const browser = await hub.logIn('ada', testPassword);
  expect((await browser.request(`${codes.verification_uri}?user_code=bcdf`)).body).toContain(
    'There is no such code, or it has expired.',
  );
  const page = await browser.request(codes.verification_uri_complete ?? '');
  expect(page.body).toMatch(/Allow sync\?.*127\.0\.0\.1.*Deny/su);
  expect(page.body).toContain(codes.user_code);
  const allowed = await submitTo(browser, page, '/hub/device', { decision: 'allow' });
  expect(allowed.body).toContain('Your device is connected');
  const tokens = await openidClient.pollDeviceAuthorizationGrant(client, { ...codes, interval: 0 });
  expect(tokens.claims()).toMatchObject({ preferred_username: 'ada', amr: ['pwd'] });
  const again = await submitTo(browser, page, '/hub/device', { decision: 'allow' });
  expect([again.status, again.body]).toEqual([400, expect.stringContaining('has expired')]);
  expect((await browser.request(`${hub.url}hub/account`)).body).toContain('sync');
  const other = await browser.request(others.verification_uri_complete ?? '');
  await submitTo(browser, other, '/hub/device', { decision: 'deny' });
  await expect(
    openidClient.pollDeviceAuthorizationGrant(client, { ...others, interval: 0 }),
  ).rejects.toMatchObject({ error: 'access_denied' });
  await hub.api('/users/ada/sessions', 'admin-service-token', { method: 'DELETE' });
  await expect(
    openidClient.refreshTokenGrant(client, tokens.refresh_token ?? ''),
  ).rejects.toThrow();
});
