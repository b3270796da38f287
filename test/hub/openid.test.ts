import * as openidClient from 'openid-client';
import { expect, test } from 'vitest';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { usersOpenServices } from '../support/services.ts';

const app = {
  name: 'grafana',
  api_token: 'secret-of-the-service-grafana',
  oauth_redirect_uri: 'http://127.0.0.1:1/login/callback',
  oauth_id_token_alg: 'ES256',
  oauth_no_confirm: true,
};

test('an app logs users in by the issuer, its id and its secret', async () => {
  await using hub = await createPasswordHub(['ada'], {
    Hub: { services: [app], load_roles: usersOpenServices },
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
});
