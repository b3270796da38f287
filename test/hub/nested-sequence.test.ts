import { expect, test } from 'vitest';
import { createExternalHub } from '../support/external-hub.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { passProvider } from '../support/oidc-provider.ts';
import {
  createUsers,
  fixtureApp,
  guarded,
  serverPath,
  startServer,
  untilServer,
} from '../support/server-hub.ts';

test('the six steps of the nested sequence with an external provider, request by request', async () => {
  await using external = await createExternalHub({
    Hub: { cleanup_servers: true },
    Spawner: { cmd: guarded(...fixtureApp('web-server'), '{port}') },
  });
  const { hub, provider } = external;
  // The server runs already: the sequence begins with a request to it.
  await createUsers(hub, 'alice');
  await startServer(hub, serverPath('alice'));
  await untilServer(hub, serverPath('alice'), ({ ready }) => ready, 'the server is ready');

  const browser = new FakeBrowser();
  const at = (location: string | undefined, base: string) => new URL(location ?? '', base);

  // 1. The server has no credentials and sends the browser to the hub.
  const asked = `${hub.url}user/alice/some/page?with=query`;
  const first = await browser.request(asked);
  expect(first.status).toBe(302);
  const authorize = at(first.headers.location, asked);
  expect(authorize.pathname).toBe('/hub/api/oauth2/authorize');
  expect(authorize.searchParams.get('client_id')).toBe('hub-user-alice');
  expect(at(authorize.searchParams.get('redirect_uri') ?? '', hub.url).pathname).toBe(
    '/user/alice/oauth_callback',
  );

  // 2. The hub has none either and sends it straight to the provider's authorize page.
  const second = await browser.request(authorize.href);
  expect(second.status).toBe(302);
  const upstream = at(second.headers.location, authorize.href);
  expect(upstream.origin).toBe(provider.issuer);
  expect(Object.fromEntries(upstream.searchParams)).toMatchObject({
    response_type: 'code',
    redirect_uri: `${hub.url}hub/oauth_callback`,
    code_challenge_method: 'S256',
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
  });
  const stateCookies = browser.cookieNames().filter((name) => name.startsWith('hub-oauth-state-'));
  expect(stateCookies).toHaveLength(1);
  expect(browser.cookie(stateCookies[0] ?? '')?.attributes).toMatch(
    /^Path=\/hub\/; Max-Age=600; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
  );
  expect(browser.cookie('hub-hub-login')).toBeUndefined();

  // 3. The provider authenticates the person and sends the browser to the hub's callback.
  const third = await passProvider(browser, upstream.href, 'alice');
  const callback = at(third.headers.location, upstream.href);
  expect(callback.href).toContain(`${hub.url}hub/oauth_callback?`);
  expect(callback.searchParams.get('code')).toMatch(/./);

  // 4. The hub exchanges the code, sets its cookie and sends the browser back to authorize.
  const fourth = await browser.request(callback.href);
  expect(fourth.status).toBe(302);
  expect(at(fourth.headers.location, callback.href).href).toBe(authorize.href);
  expect(browser.cookie('hub-hub-login')).toMatchObject({ path: '/hub/' });
  expect(browser.cookie('hub-hub-login')?.attributes).toContain('HttpOnly');
  expect(browser.cookieNames().filter((name) => name.startsWith('hub-oauth-state-'))).toEqual([]);

  // 5. It is the user's own server: accepted without asking, back to the server with a code.
  const fifth = await browser.request(authorize.href);
  expect(fifth.status).toBe(302);
  const serverCallback = at(fifth.headers.location, authorize.href);
  expect(serverCallback.pathname).toBe('/user/alice/oauth_callback');
  expect(serverCallback.searchParams.get('code')).toMatch(/./);

  // 6. The server completes its callback and sends the browser where it wanted to go.
  const sixth = await browser.request(serverCallback.href);
  expect(sixth.status).toBe(302);
  expect(at(sixth.headers.location, serverCallback.href).href).toBe(asked);
  expect(browser.cookie('hub-user-alice')).toMatchObject({ path: '/user/alice/' });
  expect((await browser.request(asked)).status).toBe(200);
});
