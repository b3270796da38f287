import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { generateSync } from 'otplib';
import { expect, test } from 'vitest';
import { createExternalHub } from '../support/external-hub.ts';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { ageLogins } from '../support/login-age.ts';
import { passProvider } from '../support/oidc-provider.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { startScriptedProvider } from '../support/scripted-provider.ts';
import { createTestHub, submitForm, type TestHub } from '../support/test-hub.ts';

async function makeToken(
  hub: TestHub,
  browser: FakeBrowser,
  fields: Readonly<Record<string, string>>,
) {
  const page = await browser.request(`${hub.url}hub/account`);
  return submitTo(browser, page, '/hub/token', fields);
}

const onward = (answer: BrowserAnswer): string =>
  /^0;url=(.*)$/.exec(String(answer.headers['refresh']))?.[1] ?? '';

test('what was typed waits while the password is asked for, also after a wrong one', async () => {
  await using hub = await createPasswordHub(['ada']);
  const browser = await hub.logIn('ada', testPassword);
  await ageLogins(hub);
  const asks = await makeToken(hub, browser, { note: 'Nightly report', expires_in: '3600' });
  expect(asks.status).toBe(403);
  expect(asks.body).toContain('Confirm it’s you');
  const wrong = await submitMain(browser, asks, { password: 'not this one' });
  expect(wrong.status).toBe(403);
  expect(wrong.body).toContain('This is not your password.');
  const sent = await submitMain(browser, wrong, { password: testPassword });
  expect(sent.status).toBe(303);
  const made = await browser.follow(sent);
  expect(made.body).toContain('Your new token “Nightly report”');
  // The page can be loaded again: it makes no second token, and shows none twice.
  const again = await browser.request(made.url);
  expect(again.body).not.toContain('Your new token');
  expect(again.body.match(/name="token_id"/g)).toHaveLength(1);
  expect((await makeToken(hub, browser, { note: 'Another' })).status).toBe(303);
  expect(JSON.stringify(hub.logLines)).not.toContain(testPassword);
});

test('a page that asks leads on to where the user was going', async () => {
  await using hub = await createPasswordHub(['ada']);
  const browser = await hub.logIn('ada', testPassword);
  await ageLogins(hub);
  const asks = await browser.open(`${hub.url}hub/account/second-factor`);
  expect(asks.status).toBe(200);
  const answer = await submitMain(browser, asks, { password: testPassword });
  expect(answer.status).toBe(303);
  expect(answer.headers.location).toBe('/hub/account/second-factor');
  expect((await browser.request(`${hub.url}hub/account/second-factor`)).body).toContain('Scan');
  const remote = await browser.request(
    `${hub.url}hub/confirm-login?next=https%3A%2F%2Fevil.test%2F`,
  );
  expect(remote.headers.location).toBe('/hub/home');
});

test('with a second factor a code is asked for, and no password that was typed is in a page', async () => {
  await using hub = await createPasswordHub(['ada']);
  const browser = await hub.logIn('ada', testPassword);
  const setUp = await browser.request(`${hub.url}hub/account/second-factor`);
  const secret =
    /id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(setUp.body)?.[1]?.replaceAll(' ', '') ?? '';
  const epoch = Math.floor(Date.now() / 1000);
  const on = await submitMain(browser, setUp, { code: generateSync({ secret, epoch }) });
  const recoveryCode = /<li>([a-z2-9]{4}(?:-[a-z2-9]{4}){3})<\/li>/.exec(on.body)?.[1] ?? '';
  await ageLogins(hub);
  const account = await browser.request(`${hub.url}hub/account`);
  const chosen = 'quiet morning rivers';
  const asks = await submitTo(browser, account, '/hub/account/password', {
    current_password: testPassword,
    new_password: chosen,
    repeat_password: chosen,
  });
  expect(asks.status).toBe(403);
  expect(asks.body).toContain('name="code"');
  expect(asks.body).not.toContain(chosen);
  expect(asks.body).not.toContain(testPassword);
  const wrong = await submitMain(browser, asks, { code: 'aaaa-aaaa-aaaa-aaaa' });
  expect(wrong.status).toBe(403);
  const changed = await submitMain(browser, wrong, { code: recoveryCode });
  expect(changed.status, changed.body).toBe(303);
  expect((await browser.request(`${hub.url}hub/account`)).body).toContain('is changed');
});

test('a login by a form of another make is confirmed by it, and by no other user', async () => {
  await using hub = await createTestHub();
  const browser = await hub.logIn('alice');
  await ageLogins(hub);
  const asks = await makeToken(hub, browser, { note: 'Nightly' });
  expect(asks.body).toMatch(/name="username"[^>]*value="alice"/);
  const other = await submitMain(browser, asks, { username: 'mallory', password: 'test' });
  expect(other.status).toBe(403);
  expect(other.body).toContain('You are logged in as alice');
  const sent = await submitMain(browser, other, { username: 'alice', password: 'test' });
  const made = await browser.follow(sent);
  expect(made.body).toContain('Your new token “Nightly”');
});

test('a login at a provider is confirmed there, which asks for the password again', async () => {
  await using external = await createExternalHub();
  const { hub } = external;
  const browser = await external.logIn('ada');
  await ageLogins(hub);
  const asks = await makeToken(hub, browser, { note: 'Nightly report' });
  expect(asks.status).toBe(403);
  expect(asks.body).toContain('Continue to Example Login');
  const countSaved = () => {
    using database = new DatabaseSync(join(hub.directory, 'hub.sqlite'), { readOnly: true });
    return database
      .prepare("select count(*) as count from keyv where key like 'pending-forms%'")
      .get()?.['count'];
  };
  // In other windows: of each login one form waits, the last.
  const former = onward(await submitMain(browser, asks, {}));
  expect(countSaved()).toBe(1);
  const leaving = await submitMain(browser, asks, {});
  const location = onward(leaving);
  expect([location === former, countSaved()]).toEqual([false, 1]);
  expect(new URL(location).searchParams.get('prompt')).toBe('login');
  expect(new URL(location).searchParams.get('max_age')).toBe('0');
  expect(location).not.toContain('Nightly');
  const back = await passProvider(browser, location, 'ada');
  const landed = await browser.request(back.headers.location ?? '');
  expect(landed.status, landed.body).toBe(200);
  expect(landed.body).toContain('It’s you');
  const made = await browser.follow(await submitMain(browser, landed, {}));
  expect(made.body).toContain('Your new token “Nightly report”');

  await ageLogins(hub);
  const page = await browser.open(`${hub.url}hub/confirm-login?next=%2Fhub%2Faccount`);
  const next = await passProvider(browser, onward(await submitMain(browser, page, {})), 'ada');
  const done = await browser.request(next.headers.location ?? '');
  expect(done.headers.location).toBe('/hub/account');
});

test('another user of the provider confirms nothing', async () => {
  await using external = await createExternalHub();
  const { hub } = external;
  const browser = await external.logIn('ada');
  await ageLogins(hub);
  const page = await browser.open(`${hub.url}hub/confirm-login`);
  const back = await passProvider(
    new FakeBrowser(),
    onward(await submitMain(browser, page, {})),
    'eve',
  );
  const landed = await browser.request(back.headers.location ?? '');
  expect(landed.status).toBe(403);
  expect(landed.body).toContain('This is another user');
  expect((await makeToken(hub, browser, { note: 'x' })).status).toBe(403);
});

test.each([
  ['an hour ago', -3600, 403],
  ['just now', 0, 302],
  ['at a time that it does not tell', undefined, 302],
])('a provider that asked for the password %s', async (_when, age, status) => {
  await using provider = await startScriptedProvider();
  await using hub = await createTestHub({
    Hub: { authenticator_class: 'oidc' },
    OIDCAuthenticator: {
      issuer: provider.issuer,
      client_id: 'the-hub',
      client_secret: 'a secret of the hub',
      allow_insecure_requests: true,
    },
  });
  const browser = new FakeBrowser();
  const first = await provider.begin(browser, hub.url);
  expect((await browser.request(first.href)).status).toBe(302);
  await ageLogins(hub);
  const page = await browser.open(`${hub.url}hub/confirm-login?next=%2Fhub%2Ftoken`);
  const query = new URL(onward(await submitForm(browser, mainOf(page), {}))).searchParams;
  provider.nonce = query.get('nonce') ?? '';
  const now = Math.floor(Date.now() / 1000);
  provider.idClaims = { auth_time: age === undefined ? undefined : now + age };
  const back = new URL(query.get('redirect_uri') ?? '');
  back.search = new URLSearchParams({
    code: 'code',
    state: query.get('state') ?? '',
    iss: provider.issuer,
  }).toString();
  const landed = await browser.request(back.href);
  expect(landed.status, landed.body).toBe(status);
  const made = await makeToken(hub, browser, { note: 'x' });
  expect(made.status).toBe(status === 302 ? 303 : 403);
});

const mainOf = (page: BrowserAnswer) => ({
  ...page,
  body: page.body.slice(page.body.indexOf('<main')),
});

test('where a proxy names the user in each request, it vouches for this one too', async () => {
  await using hub = await createTestHub({
    Hub: { authenticator_class: 'header', trusted_proxies: ['127.0.0.1'] },
    HeaderAuthenticator: { user_header: 'X-Remote-User', secret: 'what only the proxy knows' },
  });
  const browser = new FakeBrowser();
  const named = (name: string) => ({
    'x-hub-proxy-secret': 'what only the proxy knows',
    'x-remote-user': name,
  });
  await browser.request(`${hub.url}hub/login`, { headers: named('ada') });
  await ageLogins(hub);
  const { body } = await browser.request(`${hub.url}hub/account`);
  const csrf = /name="_csrf" value="([^"]+)"/.exec(body)?.[1] ?? '';
  const send = (headers: Readonly<Record<string, string>>) =>
    browser.request(`${hub.url}hub/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams({ _csrf: csrf, note: 'Nightly' }).toString(),
    });
  const past = await send({});
  expect(past.status).toBe(403);
  expect(past.body).toContain('Log out and log in again.');
  expect((await send(named('eve'))).status).toBe(403);
  const made = await browser.follow(await send(named('ada')), named('ada'));
  expect(made.body).toContain('Your new token “Nightly”');
});
