import { describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { hasGlewlwyd, startGlewlwyd } from '../support/glewlwyd.ts';
import { createTestHub, until } from '../support/test-hub.ts';

describe.runIf(hasGlewlwyd())('Glewlwyd, a provider of another make', () => {
  test('lets a user in, and confirms the login while it is used', async () => {
    const hubUrl = `http://127.0.0.1:${await freePort()}/`;
    await using provider = await startGlewlwyd(hubUrl);
    await using hub = await createTestHub({
      Hub: { bind_url: hubUrl, authenticator_class: 'oidc' },
      Authenticator: { auth_refresh_age: 0.2 },
      OIDCAuthenticator: {
        issuer: provider.issuer,
        ...provider.client,
        scope: 'openid',
        allow_insecure_requests: true,
      },
    });
    const browser = new FakeBrowser();
    const begun = await browser.request(`${hub.url}hub/login/with/oidc?next=%2Fhub%2Ftoken`);
    const back = await provider.pass(begun.headers.location ?? '');
    const landed = await browser.request(back.href);
    expect(landed.status, landed.body).toBe(302);
    expect(landed.headers.location).toBe('/hub/token');
    expect((await browser.request(`${hub.url}hub/home`)).body).toContain('dora');

    const isRefreshed = () =>
      hub.logLines.every(({ msg }) => msg !== 'login not confirmed by provider');
    const since = Date.now();
    await until(async () => {
      expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
      return Date.now() - since > 1000;
    }, 'the login was confirmed several times');
    expect(isRefreshed()).toBe(true);
  });
});
