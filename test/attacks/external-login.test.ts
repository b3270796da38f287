import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import {
  type ScriptedProvider,
  sendJson,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

let provider: ScriptedProvider;
let hub: TestHub;

async function createHub(options: object = {}, Authenticator: object = {}): Promise<TestHub> {
  return createTestHub({
    Hub: { authenticator_class: 'oidc' },
    Authenticator: { ...Authenticator },
    OIDCAuthenticator: {
      issuer: provider.issuer,
      client_id: 'the-hub',
      client_secret: 'a secret of the hub',
      allow_insecure_requests: true,
      login_service: 'Example Login',
      ...options,
    },
  });
}

beforeAll(async () => {
  provider = await startScriptedProvider();
  hub = await createHub();
});

afterAll(async () => {
  await hub?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

beforeEach(() => {
  provider.script = {};
  provider.idClaims = {};
  provider.userinfo = {};
  provider.idToken = undefined;
  provider.tokenRequests.length = 0;
});

interface Attempt {
  readonly browser: FakeBrowser;
  readonly answer: BrowserAnswer;
  /** What the hub logged during the attempt. */
  readonly log: string;
}

/** Goes through a whole login; `change` may alter the way back. */
async function attempt(change: (back: URL) => void = () => {}, at = hub): Promise<Attempt> {
  const browser = new FakeBrowser();
  const back = await provider.begin(browser, at.url);
  change(back);
  return await come(browser, back, at);
}

async function come(browser: FakeBrowser, back: URL, at = hub): Promise<Attempt> {
  const before = at.logLines.length;
  const answer = await browser.request(back.href);
  const log = at.logLines
    .slice(before)
    .filter(({ level }) => Number(level) >= 40)
    .map((line) => JSON.stringify(line))
    .join('\n');
  return { browser, answer, log };
}

/** A page for people, a line for the operator, and no session. */
function expectRefused(
  { browser, answer, log }: Attempt,
  expected: { readonly status: number; readonly page: string; readonly log: RegExp },
): void {
  expect(answer.status, answer.body).toBe(expected.status);
  expect(answer.headers['content-type']).toContain('text/html');
  expect(answer.body).toContain(expected.page);
  expect(answer.body).toMatch(/<a class="button primary wide" href="[^"]+">Try again/);
  expect(log).toMatch(expected.log);
  expect(browser.cookie('hub-hub-login')).toBeUndefined();
  expect(browser.cookie('hub-session-id')).toBeUndefined();
  // Neither the page nor the log tells secrets.
  for (const secret of [
    'a code of the provider',
    'an access token',
    'a secret of the hub',
    'eyJ',
  ]) {
    expect(answer.body).not.toContain(secret);
    expect(log).not.toContain(secret);
  }
}

test('a login that is right in every way succeeds', async () => {
  const { answer, browser } = await attempt();
  expect(answer.status, answer.body).toBe(302);
  expect(answer.headers.location).toBe('/hub/home');
  expect(browser.cookie('hub-hub-login')).toBeDefined();
  const [request] = provider.tokenRequests;
  expect(request?.get('redirect_uri')).toBe(`${hub.url}hub/oauth_callback`);
  expect(request?.get('code_verifier')).toMatch(/^[\w-]{43,}$/);
});

describe('state', () => {
  const cannotGoOn = 'This login cannot continue';

  test('missing, twice, or too long to be one', async () => {
    const expected = { status: 403, page: cannotGoOn, log: /the state parameter is missing/ };
    expectRefused(await attempt((back) => back.searchParams.delete('state')), expected);
    expectRefused(await attempt((back) => back.searchParams.append('state', 'x')), expected);
    expectRefused(
      await attempt((back) => back.searchParams.set('state', 'x'.repeat(600))),
      expected,
    );
  });

  test('tampered with', async () => {
    const tampered = await attempt((back) => {
      const state = back.searchParams.get('state') ?? '';
      back.searchParams.set('state', state.slice(0, -1) + (state.endsWith('A') ? 'B' : 'A'));
    });
    expectRefused(tampered, {
      status: 403,
      page: cannotGoOn,
      log: /not of a login begun in this browser/,
    });
    expect(provider.tokenRequests).toHaveLength(0);
  });

  test("of another browser, although that browser's login is under way", async () => {
    const victim = new FakeBrowser();
    await provider.begin(victim, hub.url);
    const back = await provider.begin(new FakeBrowser(), hub.url);
    const result = await come(victim, back);
    expectRefused(result, {
      status: 403,
      page: cannotGoOn,
      log: /not of a login begun in this browser/,
    });
  });

  test('with the cookie of another state, renamed', async () => {
    const browser = new FakeBrowser();
    const [mine] = [await provider.begin(browser, hub.url)];
    const [name = ''] = browser
      .cookieNames()
      .filter((cookie) => cookie.startsWith('hub-oauth-state-'));
    const value = browser.cookie(name)?.value ?? '';
    const other = new FakeBrowser();
    const back = await provider.begin(other, hub.url);
    const [otherName = ''] = other
      .cookieNames()
      .filter((cookie) => cookie.startsWith('hub-oauth-state-'));
    const forged = new FakeBrowser();
    forged.setCookie(otherName, value, '/hub/');
    expect(mine.searchParams.get('state')).not.toBe(back.searchParams.get('state'));
    expectRefused(await come(forged, back), {
      status: 403,
      page: cannotGoOn,
      log: /not of a login/,
    });
  });

  test('used a second time, even by a browser that kept its cookie', async () => {
    const browser = new FakeBrowser();
    const back = await provider.begin(browser, hub.url);
    const [name = ''] = browser
      .cookieNames()
      .filter((cookie) => cookie.startsWith('hub-oauth-state-'));
    const kept = browser.cookie(name)?.value ?? '';
    expect((await come(browser, back)).answer.status).toBe(302);
    const again = new FakeBrowser();
    again.setCookie(name, kept, '/hub/');
    const result = await come(again, back);
    expectRefused(result, { status: 403, page: cannotGoOn, log: /the state was used before/ });
    expect(provider.tokenRequests).toHaveLength(1);
  });

  test('used twice at the same moment: one wins', async () => {
    const browser = new FakeBrowser();
    const back = await provider.begin(browser, hub.url);
    const answers = await Promise.all([1, 2, 3, 4].map(() => browser.request(back.href)));
    expect(answers.map(({ status }) => status).sort()).toEqual([302, 403, 403, 403]);
    expect(provider.tokenRequests).toHaveLength(1);
  });

  test('an attacker cannot log a victim in as another user: the callback alone does nothing', async () => {
    const attacker = new FakeBrowser();
    const back = await provider.begin(attacker, hub.url);
    const victim = new FakeBrowser();
    expectRefused(await come(victim, back), {
      status: 403,
      page: cannotGoOn,
      log: /not of a login/,
    });
  });
});

test('a session planted in a browser before it logs in does not become that login', async () => {
  const become = (name: string) => {
    provider.idClaims = { sub: name, preferred_username: name };
    provider.userinfo = { sub: name };
  };
  become('mallory');
  const attacker = await attempt();
  const planted = attacker.browser.cookie('hub-hub-login')?.value ?? '';
  become('victim');
  const victim = new FakeBrowser();
  const back = await provider.begin(victim, hub.url);
  victim.setCookie('hub-hub-login', planted, '/hub/');
  expect((await come(victim, back)).answer.status).toBe(302);
  expect((await victim.open(`${hub.url}hub/account`)).body).toContain('victim');

  const other = new FakeBrowser();
  other.setCookie('hub-hub-login', planted, '/hub/');
  expect((await other.request(`${hub.url}hub/account`)).status).toBe(302);
});

test('several tabs log in at once, and the tossed cookie of a neighbour disturbs none of them', async () => {
  const browser = new FakeBrowser();
  const first = await provider.begin(browser, hub.url, '/hub/token');
  const firstNonce = provider.nonce;
  const second = await provider.begin(browser, hub.url, '/hub/services');
  const secondNonce = provider.nonce;
  for (const name of browser.cookieNames()) {
    if (name.startsWith('hub-oauth-state-')) browser.setCookie(name, 'tossed-in', '/');
  }
  provider.nonce = secondNonce;
  expect((await come(browser, second)).answer.headers.location).toBe('/hub/services');
  const session = browser.cookie('hub-session-id')?.value;
  provider.nonce = firstNonce;
  expect((await come(browser, first)).answer.headers.location).toBe('/hub/token');
  expect(browser.cookie('hub-session-id')?.value).toBe(session);
});

test('however many logins a browser begins, its cookies stay small', async () => {
  const browser = new FakeBrowser();
  for (let index = 0; index < 12; index += 1) {
    await provider.begin(browser, hub.url, `/hub/token?${'x'.repeat(1500)}=${index}`);
    expect(browser.cookieHeader(`${hub.url}hub/`).length).toBeLessThan(7000);
  }
  const last = await provider.begin(browser, hub.url, `/hub/token?${'y'.repeat(3900)}`);
  expect((await come(browser, last)).answer.status).toBe(302);
});

test('next leads only to the hub itself', async () => {
  for (const next of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    'javascript:1',
  ]) {
    const browser = new FakeBrowser();
    const back = await provider.begin(browser, hub.url, next);
    expect((await come(browser, back)).answer.headers.location).toBe('/hub/home');
  }
});

test('neither the Host header nor a forwarded one reaches the callback URL', async () => {
  const browser = new FakeBrowser();
  const begun = await browser.request(`${hub.url}hub/login/with/oidc`, {
    headers: {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
    },
  });
  const redirectUri = new URL(begun.headers.location ?? '').searchParams.get('redirect_uri');
  expect(redirectUri).toBe(`${hub.url}hub/oauth_callback`);
});

describe('the answer that the browser brings', () => {
  test('the person said no', async () => {
    const denied = await attempt((back) => {
      back.searchParams.delete('code');
      back.searchParams.set('error', 'access_denied');
    });
    expect(denied.answer.status).toBe(403);
    expect(denied.answer.body).toContain('You did not log in');
    expect(denied.browser.cookie('hub-hub-login')).toBeUndefined();
  });

  test.for([
    [
      'another error of the provider',
      (back: URL) => {
        back.searchParams.delete('code');
        back.searchParams.set('error', 'server_error');
      },
      /refused the request: server_error/,
    ],
    ['no code', (back: URL) => back.searchParams.delete('code'), /oauth callback without code/],
    [
      'the issuer of another provider (RFC 9207)',
      (back: URL) => back.searchParams.set('iss', 'https://evil.example'),
      /iss/,
    ],
    [
      'no issuer, although the provider sends one',
      (back: URL) => back.searchParams.delete('iss'),
      /iss/,
    ],
    ['two codes', (back: URL) => back.searchParams.append('code', 'other'), /code/],
  ] as const)('%s', async ([, change, log]) => {
    expectRefused(await attempt(change), { status: 403, page: '<h1>', log });
  });

  test('an error text is not shown: an attacker may have written it', async () => {
    const { answer, log } = await attempt((back) => {
      back.searchParams.delete('code');
      back.searchParams.set('error', '<b>evil</b>\nforged');
      back.searchParams.set('error_description', 'Call +1 555 0100 and tell your password');
    });
    expect(answer.body).not.toContain('evil');
    expect(answer.body).not.toContain('your password');
    expect(log).not.toContain('your password');
  });
});

describe('the token endpoint', () => {
  const unavailable = 'The login provider does not answer';
  const refused = 'You could not be logged in';

  test.for([
    ['answers 500', (res) => sendJson(res, {}, 500), 503, unavailable, /answered 500/],
    [
      'answers 502 with a page',
      (res) => res.writeHead(502).end('<html>'),
      503,
      unavailable,
      /answered 502/,
    ],
    ['answers with garbage', (res) => res.end('<html>what?'), 403, refused, /content-type|parsing/],
    [
      'answers with JSON that is no object',
      (res) => sendJson(res, [1]),
      403,
      refused,
      /invalid response/,
    ],
    [
      'redirects elsewhere',
      (res) => res.writeHead(302, { location: 'https://evil.example/' }).end(),
      403,
      refused,
      /answered 302/,
    ],
    ['drops the connection', (res) => res.destroy(), 503, unavailable, /cannot be reached/],
    [
      'says that the code was used',
      (res) => sendJson(res, { error: 'invalid_grant' }, 400),
      403,
      refused,
      /no longer accepts the code/,
    ],
    [
      'does not know the hub',
      (res) => sendJson(res, { error: 'invalid_client' }, 401),
      403,
      refused,
      /check client_id and client_secret/,
    ],
    [
      'sends no ID token',
      (res) => sendJson(res, { access_token: 'an access token', token_type: 'bearer' }),
      403,
      refused,
      /id_token/,
    ],
  ] as const satisfies readonly (readonly [
    string,
    (res: ServerResponse) => void,
    number,
    string,
    RegExp,
  ])[])('%s', async ([, answer, status, page, log]) => {
    provider.script.token = (_req, res) => void answer(res);
    expectRefused(await attempt(), { status, page, log });
  });

  test('sends 30 MB, announced or not, and is not read to the end', async () => {
    for (const announced of [true, false]) {
      let sentBytes = 0;
      provider.script.token = async (_req, res) => {
        res.writeHead(200, {
          'content-type': 'application/json',
          ...(announced && { 'content-length': String(30 << 20) }),
        });
        const piece = Buffer.alloc(1 << 20, ' ');
        while (sentBytes < 30 << 20 && !res.destroyed) {
          sentBytes += piece.length;
          if (!res.write(piece)) await new Promise((go) => res.once('drain', go).once('close', go));
        }
        res.end('{}');
      };
      const result = await attempt();
      expect([403, 503]).toContain(result.answer.status);
      expectRefused(result, {
        status: result.answer.status,
        page: '<h1>',
        log: /larger than 1048576/,
      });
      expect(sentBytes).toBeLessThan(20 << 20);
    }
  });

  test('never answers, or never ends its answer', async () => {
    await using hurried = await createHub({ request_timeout: 1 });
    provider.script.token = () => {};
    expectRefused(await attempt(undefined, hurried), {
      status: 503,
      page: unavailable,
      log: /did not answer in time/,
    });
    provider.script.token = (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).write('{');
    };
    expectRefused(await attempt(undefined, hurried), {
      status: 503,
      page: unavailable,
      log: /did not answer in time/,
    });
  });
});

describe('the ID token', () => {
  const hour = 3600;
  const nowSeconds = () => Math.floor(Date.now() / 1000);

  test.for<readonly [string, Record<string, unknown> | (() => Record<string, unknown>), RegExp]>([
    ['of another issuer', { iss: 'https://evil.example' }, /iss/],
    ['for another client', { aud: 'another' }, /aud/],
    [
      'for several clients, meant for another',
      { aud: ['the-hub', 'another'], azp: 'another' },
      /azp/,
    ],
    ['with another nonce', { nonce: 'another' }, /nonce/],
    ['without a nonce', { nonce: undefined }, /nonce/],
    ['without a subject', { sub: undefined }, /sub/],
    ['that has expired', () => ({ exp: nowSeconds() - hour }), /clock/],
    [
      'of a clock an hour behind',
      () => ({ iat: nowSeconds() - hour, exp: nowSeconds() - hour + 300 }),
      /clock/,
    ],
    [
      'of a clock an hour ahead',
      () => ({ iat: nowSeconds() + hour, exp: nowSeconds() + hour + 300 }),
      /clock/,
    ],
    ['that never expires', { exp: undefined }, /exp/],
  ])('%s', async ([, claims, log]) => {
    provider.idClaims = typeof claims === 'function' ? claims() : claims;
    expectRefused(await attempt(), { status: 403, page: 'You could not be logged in', log });
  });

  test.for<
    readonly [string, (claims: Record<string, unknown>) => Promise<string> | string, RegExp]
  >([
    [
      'without a signature (alg none)',
      (claims) => `${encode({ alg: 'none' })}.${encode(claims)}.`,
      /alg|signed/,
    ],
    [
      'signed with the public key as a shared secret (HS256)',
      (claims) => provider.signWithPublicKey(claims),
      /alg|signed/,
    ],
    [
      'whose claims were changed',
      async (claims) => {
        const [header, , signature] = (await provider.sign(claims)).split('.');
        return `${header}.${encode({ ...claims, preferred_username: 'admin' })}.${signature}`;
      },
      /not signed by the provider/,
    ],
    [
      'signed with an unknown key',
      (claims) => provider.sign(claims, { kid: 'unknown' }),
      /not signed by the provider/,
    ],
    ['that is garbage', () => 'not.a.token', /JWT|parsing/],
  ])('%s', async ([, make, log]) => {
    provider.idToken = make;
    expectRefused(await attempt(), { status: 403, page: 'You could not be logged in', log });
  });

  test('with its own key in the header is not signed by the provider', async () => {
    const other = await startScriptedProvider();
    await using _ = other;
    provider.idToken = (claims) => other.sign(claims, { jku: `${other.issuer}/jwks` });
    expectRefused(await attempt(), {
      status: 403,
      page: '<h1>',
      log: /not signed by the provider/,
    });
  });

  test('signed with a new key after a rotation is accepted', async () => {
    expect((await attempt()).answer.status).toBe(302);
    await provider.rotateKeys();
    await until(async () => (await attempt()).answer.status === 302, 'the new key is known');
  });
});

describe('the user endpoint', () => {
  test.for([
    ['speaks of somebody else', (res) => sendJson(res, { sub: 'subject-2' }), 403, /sub/],
    ['answers 500', (res) => sendJson(res, {}, 500), 503, /answered 500/],
    ['answers with garbage', (res) => res.end('<html>'), 403, /content-type|parsing/],
    [
      'no longer knows its token',
      (res) => res.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end(),
      403,
      /no longer accepts its own token/,
    ],
  ] as const satisfies readonly (readonly [
    string,
    (res: ServerResponse) => void,
    number,
    RegExp,
  ])[])('%s', async ([, answer, status, log]) => {
    provider.script.userinfo = (_req, res) => void answer(res);
    expectRefused(await attempt(), { status, page: '<h1>', log });
  });

  test('cannot say what only the signed token may say', async () => {
    provider.userinfo = { iss: 'https://evil.example', aud: 'another', preferred_username: 'bob' };
    expect((await attempt()).answer.status).toBe(302);
  });
});

describe('the name', () => {
  test('is without the domain of strip_domain, and with any other', async () => {
    await using stripping = await createHub({ strip_domain: 'Example.org' }, { allow_all: true });
    for (const claimed of ['Ada@EXAMPLE.org', 'ada@example.org.evil.example', '@example.org']) {
      provider.idClaims = { preferred_username: claimed, sub: `of ${claimed}` };
      provider.userinfo = { sub: `of ${claimed}` };
      expect((await attempt(() => {}, stripping)).answer.status).toBe(302);
    }
    const users = await (await stripping.api('/users', 'admin-service-token')).json();
    const names = (users as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['ada', 'ada@example.org.evil.example', '@example.org']),
    );
  });

  test.for<readonly [string, unknown, RegExp]>([
    [
      'is missing',
      undefined,
      /preferred_username \(username_claim\) is missing or not text; there are: /,
    ],
    ['is empty', '', /username_claim/],
    ['is a number', 42, /username_claim/],
    ['is an object', { toString: 'admin' }, /username_claim/],
    ['is a list', ['admin'], /username_claim/],
  ])('%s', async ([, name, log]) => {
    provider.idClaims = { preferred_username: name };
    const result = await attempt();
    expectRefused(result, { status: 403, page: 'You could not be logged in', log });
    expect(result.log).not.toContain('subject-1');
  });

  test.for([
    ['holds a slash', 'a/b'],
    ['is a relative path', '..'],
    ['holds a control character', 'a\u0000b'],
    ['is half a character', '\uD800'],
    ['is very long', 'x'.repeat(500_000)],
  ])('%s', async ([, name]) => {
    provider.idClaims = { preferred_username: name, sub: `subject of ${String(name).length}` };
    provider.userinfo = { sub: provider.idClaims['sub'] };
    const { answer, browser } = await attempt();
    expect(answer.status).toBe(403);
    expect(answer.body).toContain('cannot be used here');
    expect(answer.body.length).toBeLessThan(20_000);
    expect(browser.cookie('hub-hub-login')).toBeUndefined();
    const logged = hub.logLines.map((line) => JSON.stringify(line));
    expect(Math.max(...logged.map((line) => line.length))).toBeLessThan(5_000);
  });
});

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

test('a provider that is down when the hub starts: the login page says so, and later it works', async () => {
  await using late = await startScriptedProvider({ isDown: true });
  await using waiting = await createTestHub({
    Hub: { authenticator_class: 'oidc' },
    OIDCAuthenticator: {
      issuer: late.issuer,
      client_id: 'the-hub',
      client_secret: 'a secret of the hub',
      allow_insecure_requests: true,
      login_service: 'Example Login',
    },
  });
  const browser = new FakeBrowser();
  await until(async () => {
    const page = await browser.request(`${waiting.url}hub/login`);
    return page.body.includes('“Example Login” does not answer at the moment');
  }, 'the login page says that the provider is down');
  const down = await browser.request(`${waiting.url}hub/login/with/oidc?next=%2Fhub%2Ftoken`);
  expect(down.status).toBe(503);
  expect(down.body).toContain('Example Login does not answer at the moment');
  expect(down.body).toContain('/hub/login/with/oidc?next=%2Fhub%2Ftoken');
  expect(JSON.stringify(waiting.logLines)).toContain('login provider unavailable, trying again');

  await late.listen();
  await until(async () => {
    const page = await browser.request(`${waiting.url}hub/login`);
    return !page.body.includes('does not answer');
  }, 'the hub has found the provider');
  const back = await late.begin(browser, waiting.url);
  expect((await browser.request(back.href)).status).toBe(302);
});

test.for([
  ['that is another one', (issuer: string) => ({ issuer: `${issuer}/other` })],
  ['without keys', () => ({ jwks_uri: undefined })],
  [
    'whose endpoints are elsewhere without encryption',
    () => ({ token_endpoint: 'http://evil.example/token' }),
  ],
])('a provider %s lets nobody in', async ([, change]) => {
  await using odd = await startScriptedProvider({
    metadata: (change as (issuer: string) => object)('http://127.0.0.1:1') as Record<
      string,
      unknown
    >,
  });
  const previous = provider;
  provider = odd;
  try {
    await using oddHub = await createHub();
    const browser = new FakeBrowser();
    const begun = await browser.request(`${oddHub.url}hub/login/with/oidc`);
    if (begun.status === 302) {
      const back = await odd.begin(browser, oddHub.url);
      expect((await browser.request(back.href)).status).toBe(503);
    } else expect(begun.status).toBe(503);
    expect(browser.cookie('hub-hub-login')).toBeUndefined();
  } finally {
    provider = previous;
  }
});
