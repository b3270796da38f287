import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { ageLogins } from '../support/login-age.ts';
import {
  type ScriptedProvider,
  sendJson,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { submitFormTo } from '../support/server-hub.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

// Mix-up (RFC 9700 §4.4): the user begins a login at a hostile provider, which forwards the browser to an honest one.
// The honest one is plain OAuth 2, without `iss`, and checks what it should: redirect URI and PKCE.
let honest: ScriptedProvider;
let evil: ScriptedProvider;
let started: AsyncDisposableStack;

beforeEach(async () => {
  started = new AsyncDisposableStack();
  honest = started.use(await startScriptedProvider());
  evil = started.use(await startScriptedProvider());
});
afterEach(() => started.disposeAsync());

async function createHub(separate: boolean): Promise<TestHub> {
  const entry = (name: string, { issuer }: ScriptedProvider) => ({
    class: 'oauth2',
    name,
    authorize_url: `${issuer}/authorize`,
    token_url: `${issuer}/token`,
    userdata_url: `${issuer}/userinfo`,
    client_id: 'the-hub',
    client_secret: 'a secret of the hub',
    allow_insecure_requests: true,
    login_service: `The ${name}`,
  });
  return started.use(
    await createTestHub({
      Hub: { authenticator_class: [entry('honest', honest), 'dummy', entry('evil', evil)] },
      Authenticator: { separate_callbacks: separate },
    }),
  );
}

/** The honest provider: the user `victim`, who is logged in there and has consented before, gets a code at once. */
function openHonestProvider(registered: readonly string[]) {
  const challenges = new Map<string, string>();
  honest.userinfo = { id: 7, username: 'victim' };
  honest.script.token = (_req, res, body) => {
    const challenge = challenges.get(body.get('code') ?? '');
    const verifier = createHash('sha256').update(body.get('code_verifier') ?? '');
    if (challenge !== verifier.digest('base64url')) {
      return sendJson(res, { error: 'invalid_grant' }, 400);
    }
    sendJson(res, { access_token: 'an access token', token_type: 'Bearer' });
  };
  return {
    authorize(request: URLSearchParams): URL {
      const redirectUri = request.get('redirect_uri') ?? '';
      if (!registered.includes(redirectUri)) throw new Error(`${redirectUri} is not registered`);
      const code = `code-${challenges.size}`;
      challenges.set(code, request.get('code_challenge') ?? '');
      const back = new URL(redirectUri);
      back.search = new URLSearchParams({ code, state: request.get('state') ?? '' }).toString();
      return back;
    },
  };
}

async function begin(hub: TestHub, browser: FakeBrowser, name: string) {
  const begun = await browser.request(`${hub.url}hub/login/with/${name}`);
  return new URL(begun.headers.location ?? 'no-redirect:').searchParams;
}

/**
 * What a hostile provider makes of the request of the victim: one for the honest provider, with the PKCE challenge of
 * the attacker's own login there, so that the code fits that login.
 */
function forge(ofVictim: URLSearchParams, ofAttacker: URLSearchParams): URLSearchParams {
  const forged = new URLSearchParams(ofAttacker);
  forged.set('state', ofVictim.get('state') ?? '');
  return forged;
}

test('with one callback for all, the code of the honest provider logs the attacker in', async () => {
  const hub = await createHub(false);
  const provider = openHonestProvider([`${hub.url}hub/oauth_callback`]);
  const [victim, attacker] = [new FakeBrowser(), new FakeBrowser()];
  const ofAttacker = await begin(hub, attacker, 'honest');
  const back = provider.authorize(forge(await begin(hub, victim, 'evil'), ofAttacker));
  await victim.request(back.href);
  const stolen = evil.tokenRequests[0]?.get('code') ?? '';
  const own = new URL(ofAttacker.get('redirect_uri') ?? '');
  own.search = new URLSearchParams({
    code: stolen,
    state: ofAttacker.get('state') ?? '',
  }).toString();
  expect((await attacker.request(own.href)).status).toBe(302);
  expect((await attacker.open(`${hub.url}hub/account`)).body).toContain('victim');
});

describe('with separate_callbacks', () => {
  test.for([
    ['login', (hub, browser) => begin(hub, browser, 'evil')],
    ['link', beginLink],
    ['confirmation', beginConfirmation],
  ] as const satisfies readonly (readonly [string, BeginAtEvil])[])(
    'no code reaches another provider: %s',
    async ([, beginAtEvil]) => {
      const hub = await createHub(true);
      const provider = openHonestProvider([`${hub.url}hub/oauth_callback/honest`]);
      const victim = new FakeBrowser();
      const ofAttacker = await begin(hub, new FakeBrowser(), 'honest');
      const ofVictim = await beginAtEvil(hub, victim);
      expect(ofVictim.get('redirect_uri')).toBe(`${hub.url}hub/oauth_callback/evil`);
      expect(() => provider.authorize(ofVictim)).toThrow('is not registered');
      evil.tokenRequests.length = 0;

      const back = provider.authorize(forge(ofVictim, ofAttacker));
      const answer = await victim.request(back.href);
      expect(answer.status).toBe(403);
      expect(answer.body).toContain('This login cannot continue');
      expect(JSON.stringify(hub.logLines)).toContain('oauth callback mismatch');
      // The state is used up: the code reaches no one at another address either.
      for (const path of ['/hub/oauth_callback', '/hub/oauth_callback/evil']) {
        back.pathname = path;
        expect((await victim.request(back.href)).status).toBe(403);
      }
      expect(evil.tokenRequests).toHaveLength(0);
    },
  );

  test('the address that all would share takes no login', async () => {
    const hub = await createHub(true);
    const browser = new FakeBrowser();
    const provider = openHonestProvider([`${hub.url}hub/oauth_callback/honest`]);
    const back = provider.authorize(await begin(hub, browser, 'honest'));
    back.pathname = '/hub/oauth_callback';
    expect((await browser.request(back.href)).status).toBe(403);
    expect(browser.cookie('hub-hub-login')).toBeUndefined();
  });

  test('a login at the honest provider works, and names its own redirect URI throughout', async () => {
    const hub = await createHub(true);
    const redirectUri = `${hub.url}hub/oauth_callback/honest`;
    const provider = openHonestProvider([redirectUri]);
    const requests: (string | null)[] = [];
    const { token } = honest.script;
    honest.script.token = (req, res, body) => {
      requests.push(body.get('redirect_uri'));
      return token?.(req, res, body);
    };
    const browser = new FakeBrowser();
    const back = provider.authorize(await begin(hub, browser, 'honest'));
    expect((await browser.request(back.href)).status).toBe(302);
    expect(requests).toEqual([redirectUri]);
    expect((await browser.open(`${hub.url}hub/account`)).body).toContain('victim');
  });
});

test('a callback of its own is not taken for one that all share', async () => {
  const hub = await createHub(false);
  const browser = new FakeBrowser();
  const provider = openHonestProvider([`${hub.url}hub/oauth_callback`]);
  const back = provider.authorize(await begin(hub, browser, 'honest'));
  back.pathname = '/hub/oauth_callback/honest';
  expect((await browser.request(back.href)).status).toBe(403);
});

/** Begins a request at the hostile provider; returns its parameters. */
type BeginAtEvil = (hub: TestHub, browser: FakeBrowser) => Promise<URLSearchParams>;

/** Logs in at the hostile provider, which the user has an account at too. */
async function logInAtEvil(hub: TestHub, browser: FakeBrowser): Promise<void> {
  evil.userinfo = { id: 1, username: 'victor' };
  evil.script.token = (_req, res, body) => {
    evil.tokenRequests.push(body);
    sendJson(res, { access_token: 'an access token', token_type: 'Bearer' });
  };
  const query = await begin(hub, browser, 'evil');
  const back = new URL(query.get('redirect_uri') ?? 'no-redirect:');
  back.search = new URLSearchParams({ code: 'code', state: query.get('state') ?? '' }).toString();
  expect((await browser.request(back.href)).status).toBe(302);
}

async function beginLink(hub: TestHub, browser: FakeBrowser): Promise<URLSearchParams> {
  await logInAtEvil(hub, browser);
  const account = await browser.request(`${hub.url}hub/account`);
  const values = { authenticator: 'evil' };
  return leavingFor(await submitFormTo(browser, account, /identities\/link$/, values));
}

async function beginConfirmation(hub: TestHub, browser: FakeBrowser): Promise<URLSearchParams> {
  await logInAtEvil(hub, browser);
  await ageLogins(hub);
  const page = await browser.request(`${hub.url}hub/confirm-login`);
  return leavingFor(await submitFormTo(browser, page, /confirm-login$/));
}

function leavingFor({ headers }: BrowserAnswer): URLSearchParams {
  const location = /^0;url=(.*)$/.exec(String(headers['refresh']))?.[1] ?? 'no-redirect:';
  return new URL(location).searchParams;
}
