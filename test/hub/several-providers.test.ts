import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { createTestHub, submitForm, type TestHub } from '../support/test-hub.ts';

/** A hub with two providers and a form, in this order. */
async function createSeveral(
  Authenticator: Record<string, unknown> = {},
  nameOf: (name: string) => string | Readonly<Record<string, string>> = (name) => `The ${name}`,
) {
  await using starting = new AsyncDisposableStack();
  const [work, club] = [
    starting.use(await startScriptedProvider()),
    starting.use(await startScriptedProvider()),
  ];
  const entry = (name: string, provider: ScriptedProvider) => ({
    class: 'oidc',
    name,
    issuer: provider.issuer,
    client_id: 'the-hub',
    client_secret: 'a secret of the hub',
    allow_insecure_requests: true,
    login_service: nameOf(name),
  });
  const hub = starting.use(
    await createTestHub({
      Hub: { authenticator_class: [entry('work', work), 'dummy', entry('club', club)] },
      Authenticator,
    }),
  );
  const started = starting.move();
  return { hub, work, club, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

async function comeBack(
  hub: TestHub,
  { issuer, ...provider }: ScriptedProvider,
  browser: FakeBrowser,
  location: string,
) {
  const query = new URL(location).searchParams;
  const back = new URL(query.get('redirect_uri') ?? hub.url);
  back.search = new URLSearchParams({
    code: 'code',
    state: query.get('state') ?? '',
    iss: issuer,
  }).toString();
  expect(provider.tokenRequests).toBeDefined();
  return await browser.request(back.href);
}

async function logIn(hub: TestHub, provider: ScriptedProvider, name: string, browser: FakeBrowser) {
  const begun = await browser.request(`${hub.url}hub/login/with/${name}`);
  const location = begun.headers.location ?? '';
  provider.nonce = new URL(location).searchParams.get('nonce') ?? '';
  return await comeBack(hub, provider, browser, location);
}

test('the login page offers all of them in their order, each by its name', async () => {
  await using several = await createSeveral();
  const page = await new FakeBrowser().request(`${several.hub.url}hub/login?next=%2Fhub%2Ftoken`);
  const places = ['/hub/login/with/work?next=%2Fhub%2Ftoken', 'name="username"', 'The club'].map(
    (part) => page.body.indexOf(part),
  );
  expect(places.every((place) => place > 0)).toBe(true);
  expect(places).toEqual(places.toSorted((left, right) => left - right));
});

test('readers of each language find the providers by names in their language', async () => {
  await using several = await createSeveral({}, (name) =>
    name === 'work' ? { en: 'The company', de: 'Die Firma' } : { 'de-AT': 'Der Verein' },
  );
  const { hub, work } = several;
  const speaking = (language: string) => ({ headers: { 'accept-language': language } });
  const browser = new FakeBrowser();
  const read = async (path: string, language: string) =>
    (await browser.request(`${hub.url}hub/${path}`, speaking(language))).body;
  expect(await read('login', 'en')).toContain('The company</a>');
  const german = await read('login', 'de');
  expect(german).toContain('Die Firma</a>');
  expect(german).toContain('Der Verein</a>');
  expect((await logIn(hub, work, 'work', browser)).status).toBe(302);
  expect(await read('account', 'de')).toContain('Die Firma');
  expect(await read('account', 'fr')).toContain('The company');
});

test('the same name from two providers is not the same person, unless the person links them', async () => {
  await using several = await createSeveral();
  const { hub, work, club } = several;
  const alice = new FakeBrowser();
  expect((await logIn(hub, work, 'work', alice)).status).toBe(302);

  const foreignProcess = new FakeBrowser();
  const clash = await logIn(hub, club, 'club', foreignProcess);
  expect(clash.status).toBe(403);
  expect(clash.body).toContain('An account of this name exists, and it logs in another way');
  expect(foreignProcess.cookie('hub-hub-login')).toBeUndefined();

  const account = await alice.request(`${hub.url}hub/account`);
  const form = account.body.slice(
    account.body.indexOf('action="/hub/account/identities/link"') - 60,
  );
  const leaving = await submitForm(alice, { ...account, body: form }, { authenticator: 'club' });
  expect(leaving.status).toBe(200);
  const location = /^0;url=(.*)$/.exec(String(leaving.headers['refresh']))?.[1] ?? '';
  club.nonce = new URL(location).searchParams.get('nonce') ?? '';
  const linked = await comeBack(hub, club, alice, location);
  expect(linked.status).toBe(303);
  expect(linked.headers.location).toBe('/hub/account');
  expect((await alice.request(`${hub.url}hub/account`)).body).toContain(
    'is linked to your account',
  );

  const remote = new FakeBrowser();
  expect((await logIn(hub, club, 'club', remote)).status).toBe(302);
  expect((await remote.request(`${hub.url}hub/home`)).body).toContain('alice');
});

test('a linked identity cannot be linked to another account, and a link belongs to the login that began it', async () => {
  await using several = await createSeveral();
  const { hub, work, club } = several;
  const alice = new FakeBrowser();
  await logIn(hub, work, 'work', alice);
  club.idClaims = { preferred_username: 'clara', sub: 'subject-of-clara' };
  club.userinfo = { sub: 'subject-of-clara' };
  await logIn(hub, club, 'club', new FakeBrowser());

  const beginLink = async (browser: FakeBrowser) => {
    const account = await browser.request(`${hub.url}hub/account`);
    const form = account.body.slice(
      account.body.indexOf('action="/hub/account/identities/link"') - 60,
    );
    const leaving = await submitForm(
      browser,
      { ...account, body: form },
      { authenticator: 'club' },
    );
    const location = /^0;url=(.*)$/.exec(String(leaving.headers['refresh']))?.[1] ?? '';
    club.nonce = new URL(location).searchParams.get('nonce') ?? '';
    return location;
  };
  const taken = await comeBack(hub, club, alice, await beginLink(alice));
  expect(taken.status).toBe(403);
  expect(taken.body).toContain('This account belongs to another user here');

  const begun = await beginLink(alice);
  club.idClaims = { preferred_username: 'dora', sub: 'subject-of-dora' };
  club.userinfo = { sub: 'subject-of-dora' };
  await alice.request(`${hub.url}hub/logout`);
  const late = await comeBack(hub, club, alice, begun);
  expect(late.status).toBe(403);
  expect(late.body).toContain('no longer logged in');
});

test('a link cannot be begun by another site', async () => {
  await using several = await createSeveral();
  const { hub, work } = several;
  const alice = new FakeBrowser();
  await logIn(hub, work, 'work', alice);
  const forged = await alice.request(`${hub.url}hub/account/identities/link`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'cross-site',
    },
    body: 'authenticator=club',
  });
  expect(forged.status).toBe(403);
});

test('a code of one provider does not log in through the other (mix-up)', async () => {
  await using several = await createSeveral();
  const { hub, work, club } = several;
  const browser = new FakeBrowser();
  const begun = await browser.request(`${hub.url}hub/login/with/work`);
  const location = begun.headers.location ?? '';
  work.nonce = new URL(location).searchParams.get('nonce') ?? '';
  const mixed = await comeBack(hub, { ...work, issuer: club.issuer }, browser, location);
  expect(mixed.status).toBe(403);
  expect(work.tokenRequests).toHaveLength(0);
  expect(club.tokenRequests).toHaveLength(0);
});

test('auto_login goes straight to the only provider, from the login page and from a page', async () => {
  await using provider = await startScriptedProvider();
  await using hub = await createTestHub({
    Hub: { authenticator_class: 'oidc' },
    Authenticator: { auto_login: true },
    OIDCAuthenticator: {
      issuer: provider.issuer,
      client_id: 'the-hub',
      allow_insecure_requests: true,
    },
  });
  const answer = await new FakeBrowser().request(`${hub.url}hub/login`);
  expect(answer.headers.location).toBe('/hub/login/with/oidc');
  // After a logout nobody is logged in again by surprise.
  expect((await new FakeBrowser().request(`${hub.url}hub/logout`)).status).toBe(200);
});
