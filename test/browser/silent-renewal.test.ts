import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import { freePort } from '../support/free-port.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { requires } from '../support/requires.ts';
import { projectDirectory, usersOpenServices } from '../support/services.ts';
import type { TestHub } from '../support/test-hub.ts';

const library = join(
  projectDirectory,
  'foreign/node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js',
);

/**
 * An app without a server, which renews its tokens in a frame that nobody sees: `oidc-client-ts`, as it says to do it.
 * Names below `localhost` are this machine for browsers, and those below one of them are one site.
 */
describe.runIf(hasChromium() && requires('oauth-libraries'))('in Chromium, an app', () => {
  let hub: TestHub;
  let browser: Browser;
  let appPort: number;
  let issuer: string;
  const near = 'app.site.localhost';
  const far = 'app.elsewhere.localhost';

  beforeAll(async () => {
    const script = await readFile(library);
    const port = await freePort();
    issuer = `http://hub.site.localhost:${port}`;
    const server = createServer(({ url = '' }, response) => {
      if (url === '/oidc.js') return void response.end(script);
      response.setHeader('content-type', 'text/html');
      response.end(`<!doctype html><p id="outcome"></p><script src="/oidc.js"></script><script>
const manager = new oidc.UserManager({
  authority: '${issuer}', client_id: 'service-' + location.hostname.split('.')[1],
  redirect_uri: location.origin + '/cb', scope: 'openid profile', includeIdTokenInSilentRenew: true,
});
const say = (outcome) => { document.getElementById('outcome').textContent = outcome; };
const show = (user) => say(user.profile.preferred_username + ' ' + user.access_token);
const renew = () => manager.signinSilent({ forceIframeAuth: true }).then(show, (error) => say(error.error));
if (location.pathname === '/cb') manager.signinCallback().then((user) => user && show(user), (error) => say(error.message));
else if (location.pathname === '/login') manager.signinRedirect();
</script>`);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ({ port: appPort } = server.address() as AddressInfo);
    hub = await createPasswordHub(['ada', 'bob', 'carol'], {
      Hub: {
        bind_url: `http://127.0.0.1:${port}/`,
        public_url: issuer,
        load_roles: usersOpenServices,
        services: [near, far].map((host) => ({
          name: host.split('.')[1],
          url: `http://127.0.0.1:${appPort}`,
          oauth_redirect_uri: `http://${host}:${appPort}/cb`,
          oauth_public: true,
        })),
      },
    });
    browser = await startChromium();
    return async () => {
      await browser.close();
      await hub[Symbol.asyncDispose]();
      server.close();
      server.closeAllConnections();
    };
  });

  const outcome = (page: Page) => page.locator('#outcome');
  /** For the first time, so that consent is asked for. */
  async function logIn(
    host: string,
    userName: string,
  ): Promise<{ page: Page; complaints: string[] }> {
    const profile = await openProfile(browser);
    const { page } = profile;
    await page.goto(`http://${host}:${appPort}/login`);
    await page.getByLabel('User name').fill(userName);
    await page.getByLabel('Password', { exact: true }).fill(testPassword);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('button', { name: 'Allow' }).click();
    await outcome(page).filter({ hasText: userName }).waitFor();
    return profile;
  }
  async function renew(page: Page): Promise<string> {
    await page.evaluate('renew()');
    return (await outcome(page).textContent()) ?? '';
  }

  test('of the same site renews its tokens in a hidden frame until the user logs out', async () => {
    const { page, complaints } = await logIn(near, 'ada');
    const first = await outcome(page).textContent();
    const second = await renew(page);
    expect(second).toMatch(/^ada \S{20,}$/);
    expect(second).not.toBe(first);
    expect(complaints).toEqual([]);
    await page.context().clearCookies();
    expect(await renew(page)).toBe('login_required');
  });

  test('of another site, at which the login is not to be seen, is told to log in', async () => {
    const { page } = await logIn(far, 'bob');
    expect(await renew(page)).toBe('login_required');
  });

  test('shows no page of the hub in a frame: neither the consent, nor the login', async () => {
    const { page } = await logIn(near, 'carol');
    const framed = async (parameters: Record<string, string>) => {
      const asked = new URLSearchParams({
        response_type: 'code',
        client_id: 'service-site',
        redirect_uri: `http://${near}:${appPort}/cb`,
        scope: 'openid',
        code_challenge: 'a'.repeat(43),
        code_challenge_method: 'S256',
        ...parameters,
      });
      const src = `${hub.url}hub/api/oauth2/authorize?${asked}`;
      await page.evaluate(`new Promise((done) => {
        const frame = document.createElement('iframe');
        frame.onload = done;
        frame.src = ${JSON.stringify(src)};
        document.body.replaceChildren(frame);
      })`);
      return page.frames().at(-1)?.url();
    };
    expect(await framed({ prompt: 'none' })).toMatch(/\/cb\?code=/);
    expect(await framed({ prompt: 'none', scope: 'openid email' })).toMatch(
      'error=consent_required',
    );
    for (const prompt of ['consent', 'login', 'select_account'])
      expect(await framed({ prompt }), prompt).toBe('chrome-error://chromewebdata/');
    expect(await framed({ scope: 'openid email' })).toBe('chrome-error://chromewebdata/');
  });
});
