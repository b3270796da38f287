import { expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { requires } from '../support/requires.ts';
import { usersOpenServices } from '../support/services.ts';
import { until } from '../support/test-hub.ts';
import { apacheOf, startConfigured } from '../support/web-servers.ts';

const secret = 'secret-of-the-service-docs';

/** Apache with mod_auth_openidc, a certified client, before a page that says who is logged in. */
async function startApache(hubUrl: string, port: number) {
  return await startConfigured('Apache', port, (directory) =>
    apacheOf(
      directory,
      port,
      ['authn_core', 'authz_user', 'dir', 'auth_openidc'],
      `
OIDCProviderMetadataURL ${hubUrl}.well-known/openid-configuration
OIDCClientID service-docs
OIDCClientSecret ${secret}
OIDCRedirectURI http://127.0.0.1:${port}/private/redirect_uri
OIDCCryptoPassphrase a-long-random-text-for-a-test
OIDCScope "openid profile"
OIDCRemoteUserClaim preferred_username
DocumentRoot /usr/lib/apache2/modules
<Directory />
  AllowOverride None
</Directory>
<Location /private>
  AuthType openid-connect
  Require valid-user
</Location>
ErrorDocument 404 "hello %{REMOTE_USER}"
`,
    ),
  );
}

test.skipIf(!requires('apache2') || !requires('mod-auth-openidc'))(
  'Apache logs users in by the hub, and out again when the hub says so or when it asks the hub to',
  async () => {
    const port = await freePort();
    const home = `http://127.0.0.1:${port}`;
    await using hub = await createPasswordHub(['ada'], {
      Hub: {
        services: [
          {
            name: 'docs',
            api_token: secret,
            oauth_redirect_uri: `${home}/private/redirect_uri`,
            oauth_logout_url: `${home}/private/redirect_uri?logout=backchannel`,
            oauth_post_logout_uris: [`${home}/bye`],
            oauth_no_confirm: true,
          },
        ],
        load_roles: usersOpenServices,
      },
    });
    await using _apache = await startApache(hub.url, port);
    const shown = async (browser: FakeBrowser) =>
      (await browser.request(`${home}/private/page`)).body;

    for (const end of ['by an administrator', 'by the app'] as const) {
      const browser = await hub.logIn('ada', testPassword);
      expect((await browser.open(`${home}/private/page`)).body).toContain('hello ada');
      if (end === 'by an administrator')
        await hub.api('/users/ada/sessions', 'admin-service-token', { method: 'DELETE' });
      else {
        const logout = `${home}/private/redirect_uri?logout=${encodeURIComponent(`${home}/bye`)}`;
        expect((await browser.open(logout)).url).toMatch(`${home}/bye`);
      }
      await until(async () => !(await shown(browser)).includes('hello ada'), `ended ${end}`);
      expect((await browser.open(`${hub.url}hub/home`)).url).toContain('/hub/login');
    }
  },
);
