import { generateSync } from 'otplib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { listenForPages, type PageServer } from '../support/page-server.ts';
import { submitTo } from '../support/pages.ts';
import {
  type Asking,
  addPasskey,
  ask,
  createPasskeyHub,
  csrfOf,
  fieldsOf,
  openForm,
  originOf,
  post,
  recoveryCodesOn,
} from '../support/passkey-hub.ts';
import { acceptInvitation, inviteUser, testPassword } from '../support/password-hub.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { usersOpenServices } from '../support/services.ts';
import { createSoftwarePasskey } from '../support/software-authenticator.ts';
import { submitLogin, type TestHub, type TestHubConfig } from '../support/test-hub.ts';

const setUpPath = '/hub/login/set-up-second-factor';

let hub: TestHub;
let provider: ScriptedProvider;
let service: PageServer;
let config: TestHubConfig;
beforeAll(async () => {
  provider = await startScriptedProvider();
  service = await listenForPages('the page of the service');
  config = {
    Hub: {
      authenticator_class: ['password', 'oidc'],
      load_roles: usersOpenServices,
      services: [{ name: 'notes', url: service.url, access: 'gateway' }],
    },
    PasswordAuthenticator: {},
    OIDCAuthenticator: {
      issuer: provider.issuer,
      client_id: 'the-hub',
      client_secret: 'a secret of the hub',
      second_factor_acr: ['https://example.org/two-factors'],
      allow_insecure_requests: true,
    },
    Authenticator: {
      allow_all: true,
      require_second_factor: { groups: ['staff'], roles: ['admin'] },
    },
  };
  hub = await createPasskeyHub([], config);
  await hub.api('/groups/staff', 'admin-service-token', { method: 'POST' });
});
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

const joinStaff = (name: string) =>
  hub.api('/groups/staff/users', 'admin-service-token', {
    method: 'POST',
    body: JSON.stringify({ users: [name] }),
  });

let counter = 0;
/** A new user with a password. */
async function createUser(): Promise<string> {
  counter += 1;
  const name = `user${counter}`;
  const { secret } = await inviteUser(hub, name);
  await acceptInvitation(hub, secret, testPassword);
  return name;
}

/** A new member of the group, who has no second factor. */
async function createMember(): Promise<string> {
  const name = await createUser();
  await joinStaff(name);
  return name;
}

/** Types the password of a user who has to set up a second factor. */
async function atSetUp(name: string): Promise<Asking & { readonly page: BrowserAnswer }> {
  const browser = new FakeBrowser();
  const answer = await submitLogin(browser, hub.url, name, testPassword, '/hub/token');
  expect(answer.headers.location).toBe(setUpPath);
  const page = await browser.follow(answer);
  expect(page.body).toContain('Set up a second factor');
  return { hub, browser, page, csrf: csrfOf(page) };
}

const secretOf = ({ body }: BrowserAnswer) =>
  /id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(body)?.[1]?.replaceAll(' ', '') ?? '';
const stateOf = ({ body }: BrowserAnswer) => /name="state" value="([^"]+)"/.exec(body)?.[1] ?? '';
const codeOf = (page: BrowserAnswer) =>
  generateSync({ secret: secretOf(page), epoch: Math.floor(Date.now() / 1000) });

async function makePasskey(asking: Asking) {
  const question = await ask(asking, 'set-up');
  const passkey = createSoftwarePasskey(question.publicKey, { origin: originOf(hub) });
  return { passkey, fields: fieldsOf(question, passkey.creation) };
}

const isLoggedIn = async (browser: FakeBrowser) =>
  (await browser.request(`${hub.url}hub/home`)).status === 200;

describe('who has to set up a second factor', () => {
  test('comes past the set-up by no other address', async () => {
    const name = await createMember();
    const { browser, csrf } = await atSetUp(name);
    expect(browser.cookieNames()).not.toContain('hub-session-id');
    for (const path of [
      'hub/home',
      'hub/token',
      'hub/account',
      'hub/admin',
      'hub/spawn',
      `user/${name}/`,
      'services/notes/',
      'hub/api/oauth2/authorize?client_id=service-notes&response_type=code',
    ]) {
      const landed = await browser.open(`${hub.url}${path}`);
      expect(landed.url, path).toContain('/hub/login');
      expect(landed.body, path).not.toContain('the page of the service');
    }
    const api = await browser.request(`${hub.url}hub/api/user`, {
      headers: { 'x-csrf-token': csrf },
    });
    expect(api.status).toBe(403);
    const byPassword = await hub.api(`/users/${name}/tokens`, undefined, {
      method: 'POST',
      body: JSON.stringify({ auth: { username: name, password: testPassword } }),
    });
    expect(byPassword.status).toBe(403);
    const asking = { hub, browser, csrf };
    for (const path of ['hub/token', 'hub/account/passkeys', 'hub/account/password']) {
      const { status, headers } = await post(asking, path, { note: 'x' });
      expect(status === 403 || headers.location?.startsWith('/hub/login'), path).toBe(true);
    }
    expect((await post(asking, 'hub/login/second-factor', { code: '1' })).headers.location).toBe(
      '/hub/login',
    );
    expect(await isLoggedIn(browser)).toBe(false);
  });

  test('goes on with an authenticator app, whose recovery codes are shown first', async () => {
    const { browser, csrf, page } = await atSetUp(await createMember());
    const asking = { hub, browser, csrf };
    const state = stateOf(page);
    const wrong = await post(asking, setUpPath.slice(1), { code: 'no code', state });
    expect(wrong.status).toBe(400);
    expect(await isLoggedIn(browser)).toBe(false);
    const done = await post(asking, setUpPath.slice(1), { code: codeOf(page), state });
    expect(done.status, done.body).toBe(200);
    expect(done.body).toContain('Your recovery codes');
    expect(done.body).toContain('href="/hub/token"');
    expect(await isLoggedIn(browser)).toBe(true);
  });

  test('goes on with a passkey, and logs in with it alone from then on', async () => {
    const name = await createMember();
    const asking = await atSetUp(name);
    const { passkey, fields } = await makePasskey(asking);
    const done = await post(asking, setUpPath.slice(1), fields);
    expect(recoveryCodesOn(done)).toHaveLength(10);
    expect(done.body).toContain('href="/hub/token"');
    expect(await isLoggedIn(asking.browser)).toBe(true);
    const visit = await openForm(hub, new FakeBrowser(), 'hub/login');
    const question = await ask(visit, 'login');
    const answer = fieldsOf(question, passkey.assert(question.publicKey));
    expect((await post(visit, 'hub/login/passkey', answer)).status).toBe(303);
    expect(await isLoggedIn(visit.browser)).toBe(true);
  });

  test('is asked by a link to choose a password too', async () => {
    const name = await createMember();
    const { secret } = await inviteUser(hub, name);
    const browser = new FakeBrowser();
    const answer = await acceptInvitation(hub, secret, 'quiet morning rivers', browser);
    expect(answer.headers.location).toBe(setUpPath);
    expect(await isLoggedIn(browser)).toBe(false);
  });

  test('is not overtaken by another who knows the password', async () => {
    const name = await createMember();
    const thief = await atSetUp(name);
    const prepared = await makePasskey(thief);
    const owner = await atSetUp(name);
    // What is made in one browser is of no use in another.
    expect((await post(owner, setUpPath.slice(1), prepared.fields)).status).toBe(400);
    const { fields } = await makePasskey(owner);
    expect((await post(owner, setUpPath.slice(1), fields)).status).toBe(200);
    for (const sent of [
      prepared.fields,
      { code: codeOf(thief.page), state: stateOf(thief.page) },
    ]) {
      const answer = await post(thief, setUpPath.slice(1), sent);
      expect(answer.headers.location).toBe('/hub/login');
    }
    expect(await isLoggedIn(thief.browser)).toBe(false);
  });

  test('turns on the authenticator app that they were shown, not that of another who knows the password', async () => {
    const name = await createMember();
    const owner = await atSetUp(name);
    const thief = await atSetUp(name);
    const send = (asking: Asking, code: string, state: string) =>
      post(asking, setUpPath.slice(1), { code, state });
    const state = stateOf(owner.page);
    // A typing mistake shows the page again: with the same secret, not the one that the other was shown last.
    const again = await send(owner, 'no code', state);
    expect([again.status, secretOf(again)]).toEqual([400, secretOf(owner.page)]);
    // Nor does a form of the other count in this browser.
    for (const foreign of [stateOf(thief.page), '']) {
      const answer = await send(owner, codeOf(thief.page), foreign);
      expect(answer.status).toBe(400);
      expect(answer.body).toContain('This page was too old.');
    }
    expect((await send(owner, codeOf(owner.page), state)).status).toBe(200);
    expect(await isLoggedIn(owner.browser)).toBe(true);
    await send(thief, codeOf(thief.page), stateOf(thief.page));
    expect(await isLoggedIn(thief.browser)).toBe(false);
  });

  test('does not go on with a password that has been replaced meanwhile', async () => {
    const name = await createMember();
    const thief = await atSetUp(name);
    const { fields } = await makePasskey(thief);
    const { secret } = await inviteUser(hub, name);
    await acceptInvitation(hub, secret, 'quiet morning rivers');
    for (const sent of [fields, { code: codeOf(thief.page), state: stateOf(thief.page) }]) {
      const answer = await post(thief, setUpPath.slice(1), sent);
      expect(answer.headers.location).toBe('/hub/login');
    }
    expect(await isLoggedIn(thief.browser)).toBe(false);
  });

  test('sends no form from another site', async () => {
    const asking = await atSetUp(await createMember());
    const { fields } = await makePasskey(asking);
    const headers = { 'sec-fetch-site': 'cross-site' };
    expect((await post(asking, setUpPath.slice(1), fields, headers)).status).toBe(403);
    expect((await post({ ...asking, csrf: 'x' }, setUpPath.slice(1), fields)).status).toBe(403);
    expect(await isLoggedIn(asking.browser)).toBe(false);
  });
});

test('it is compulsory for members and holders of the role alone', async () => {
  const name = await createUser();
  const browser = await hub.logIn(name, testPassword);
  const patch = { method: 'PATCH', body: JSON.stringify({ admin: true }) };
  await hub.api(`/users/${name}`, 'admin-service-token', patch);
  // The login that there was goes on; the next one needs a second factor.
  expect(await isLoggedIn(browser)).toBe(true);
  await atSetUp(name);
});

test('the last second factor cannot be removed, another one can', async () => {
  const name = await createUser();
  const browser = await hub.logIn(name, testPassword);
  const passkey = await addPasskey(hub, browser);
  await joinStaff(name);
  const asking = await openForm(hub, browser, 'hub/account');
  const remove = () => post(asking, 'hub/account/passkeys/remove', { passkey: passkey.id });
  expect((await remove()).status).toBe(409);
  const account = await browser.request(`${hub.url}hub/account`);
  expect(account.body).not.toContain('Remove Laptop');
  const setUp = await browser.request(`${hub.url}hub/account/second-factor`);
  const on = await submitTo(browser, setUp, '/hub/account/second-factor', { code: codeOf(setUp) });
  // The codes that came with the passkey go on.
  expect(on.status).toBe(303);
  const codes = passkey.recoveryCodes;
  expect((await remove()).status).toBe(303);
  const path = 'hub/account/second-factor/remove';
  expect((await post(asking, path, { code: codes[0] ?? '' })).status).toBe(400);
  await addPasskey(hub, browser);
  expect((await post(asking, path, { code: codes[1] ?? '' })).status).toBe(303);
});

test('two tabs cannot remove the last two at once', async () => {
  const name = await createUser();
  const browser = await hub.logIn(name, testPassword);
  const passkeys = [await addPasskey(hub, browser), await addPasskey(hub, browser)];
  await joinStaff(name);
  const asking = await openForm(hub, browser, 'hub/account');
  const answers = await Promise.all(
    passkeys.map(({ id }) => post(asking, 'hub/account/passkeys/remove', { passkey: id })),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 409]);
});

describe('a login at a provider', () => {
  async function logIn(idClaims: Record<string, unknown>) {
    const browser = new FakeBrowser();
    const back = await provider.begin(browser, hub.url);
    provider.idClaims = idClaims;
    return { browser, answer: await browser.request(back.href) };
  }

  test('needs its word that a second factor was asked for', async () => {
    expect((await logIn({})).answer.status).toBe(302);
    await joinStaff('alice');
    for (const claims of [{}, { amr: ['pwd'] }, { amr: 'mfa' }, { acr: 'mfa' }, { acr: ['mfa'] }]) {
      const { browser, answer } = await logIn(claims);
      expect(answer.status, JSON.stringify(claims)).toBe(403);
      expect(answer.body).toContain('Your account needs a second factor.');
      expect(await isLoggedIn(browser)).toBe(false);
    }
    for (const claims of [{ amr: ['pwd', 'mfa'] }, { acr: 'https://example.org/two-factors' }]) {
      const { browser, answer } = await logIn(claims);
      expect(answer.status, answer.body).toBe(302);
      expect(await isLoggedIn(browser)).toBe(true);
    }
  });

  test('passes where the operator leaves it to the provider, after a reload', async () => {
    await hub.reload({
      ...config,
      Hub: {
        ...config.Hub,
        bind_url: hub.url.replace('localhost', '127.0.0.1'),
        public_url: hub.url,
      },
      Authenticator: {
        allow_all: true,
        require_second_factor: true,
        second_factor_elsewhere: ['oidc'],
      },
    });
    expect((await logIn({})).answer.status).toBe(302);
    await atSetUp(await createUser());
  });
});
