import { createHmac } from 'node:crypto';
import { decodeJwt, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  responseParameters,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

/** OpenID Connect Core 1.0 §3.1.2, incorporating errata set 2. */
let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  return () => hub[Symbol.asyncDispose]();
});

type Browser = Awaited<ReturnType<AuthorizationServerHarness['login']>>;
const request = { response_type: 'code', client_id: 'service-wiki', scope: 'openid', state: 's' };

const ask = (browser: Browser | undefined, more: Record<string, string>) =>
  hub.authorize({ ...request, ...more }, browser);
const errorOf = (answer: Response) => responseParameters(answer).get('error');

/** Whom the code of an answer is for: the subject of the ID token that it gives. */
async function subjectOf(answer: Response): Promise<string | undefined> {
  const exchanged = await hub.exchange(responseParameters(answer).get('code') ?? '');
  return decodeJwt(((await exchanged.json()) as { id_token: string }).id_token).sub;
}

/** Somebody who let the client in before. */
async function known(userName = 'ada'): Promise<Browser> {
  const browser = await hub.login(userName);
  await hub.obtainToken(browser, { scope: 'openid profile' });
  return browser;
}

async function idTokenOf(browser: Browser, client = wiki): Promise<string> {
  const client_id = `service-${client.name}`;
  const code = await hub.obtainCode(browser, { client_id, scope: 'openid' });
  const form = { grant_type: 'authorization_code', code };
  const answer = await hub.post('token', form, basic(client_id, client.secret));
  return ((await answer.json()) as { id_token: string }).id_token;
}

describe('prompt', () => {
  test('none MUST NOT display a page: without a login it is login_required', async () => {
    const answer = await ask(undefined, { prompt: 'none' });
    expect([answer.status, errorOf(answer)]).toEqual([302, 'login_required']);
    expect(responseParameters(answer).get('state')).toBe('s');
  });

  test('none without a consent is consent_required, and with one gives a code', async () => {
    const unasked = await ask(await hub.login('bob'), { prompt: 'none' });
    expect([unasked.status, errorOf(unasked)]).toEqual([302, 'consent_required']);
    const browser = await known();
    expect(await subjectOf(await ask(browser, { prompt: 'none' }))).toBe(browser.user.id);
  });

  test('none for a user who may not use the client is an error and no page', async () => {
    const browser = await known();
    await hub.roles.apply({ save: [{ ...(await hub.roles.getByName('user')), scopes: ['self'] }] });
    const answer = await ask(browser, { prompt: 'none' });
    expect([answer.status, errorOf(answer)]).toEqual([302, 'access_denied']);
  });

  test.each(['none login', 'none consent', 'enrol', 'login unknown'])(
    '%s is an invalid_request',
    async (prompt) => {
      expect(errorOf(await ask(await known(), { prompt }))).toBe('invalid_request');
    },
  );

  test('login asks users to show who they are although they are logged in, once', async () => {
    const browser = await known();
    const answer = await ask(browser, { prompt: 'login', nonce: 'n' });
    const { confirm } = (await answer.json()) as { confirm: string };
    expect(confirm).toContain('nonce=n');
    const confirmed = await hub.request(hub.origin + confirm, { headers: browser.headers });
    expect(await subjectOf(confirmed)).toBe(browser.user.id);
    const fresh = await ask(undefined, { prompt: 'login' });
    expect(fresh.headers.get('location')).not.toContain('prompt');
  });

  test.each(['consent', 'select_account', 'login consent'])(
    '%s asks for a consent that was given before, and says whose account it is',
    async (prompt) => {
      const browser = await known();
      let answer = await ask(browser, { prompt });
      if (prompt.startsWith('login')) {
        const { confirm } = (await answer.json()) as { confirm: string };
        answer = await hub.request(hub.origin + confirm, { headers: browser.headers });
      }
      expect(await answer.json()).toHaveProperty('view');
      expect(errorOf(await hub.decide({ ...request, prompt: 'consent' }, browser))).toBeNull();
    },
  );

  test('means nothing to plain OAuth', async () => {
    const answer = await hub.authorize(
      { response_type: 'code', client_id: 'service-wiki', prompt: 'none' },
      await hub.login('bob'),
    );
    expect(answer.status).toBe(200);
  });
});

test('§3.1.2.1 the request MUST be taken by POST as well, as it is by GET', async () => {
  const alice = await hub.login('alice');
  const request = {
    response_type: 'code',
    client_id: 'service-wiki',
    scope: 'openid',
    state: 'a b',
  };
  const body = new URLSearchParams(request);
  const posted = await hub.request(hub.endpoint('authorize'), { method: 'POST', body });
  expect(posted.status).toBe(302);
  const next = new URL(posted.headers.get('location') ?? '', hub.origin);
  expect(Object.fromEntries(next.searchParams)).toEqual(request);
  expect((await hub.request(next, { headers: alice.headers })).status).toBe(200);
});

describe('max_age', () => {
  test('makes a login that is older confirm, and leaves a younger one alone', async () => {
    const browser = await known();
    expect((await ask(browser, { max_age: '3600' })).status).toBe(302);
    hub.skipSeconds(3601);
    const answer = await ask(browser, { max_age: '3600' });
    expect(((await answer.json()) as { confirm: string }).confirm).not.toContain('max_age');
    expect(errorOf(await ask(browser, { max_age: '3600', prompt: 'none' }))).toBe('login_required');
    expect(await (await ask(browser, { max_age: '0' })).json()).toHaveProperty('confirm');
  });

  test.each(['-1', 'soon', '1.5', '1e3'])('%s is an invalid_request', async (max_age) => {
    expect(errorOf(await ask(await known(), { max_age }))).toBe('invalid_request');
  });
});

describe('id_token_hint', () => {
  test('of the user goes on, also when it has expired; of another user it is login_required', async () => {
    const browser = await known();
    const id_token_hint = await idTokenOf(browser);
    const silent = { prompt: 'none', id_token_hint };
    expect(await subjectOf(await ask(browser, silent))).toBe(browser.user.id);
    hub.skipSeconds(3700);
    expect(await subjectOf(await ask(browser, silent))).toBe(browser.user.id);
    const other = await known('bob');
    expect(errorOf(await ask(other, silent))).toBe('login_required');
    expect(errorOf(await ask(other, { id_token_hint }))).toBe('login_required');
  });

  test('of another client, another issuer, another key or none is an invalid_request', async () => {
    const browser = await known();
    const claims = { sub: browser.user.id, aud: 'service-wiki', iss: hub.issuer };
    const { keys } = (await (await hub.request(hub.endpoint('jwks'))).json()) as {
      keys: { kid: string; alg: string; n?: string }[];
    };
    const { kid = '', n = '' } = keys.find(({ alg }) => alg === 'RS256') ?? {};
    const { privateKey } = await generateKeyPair('RS256');
    const signWith = (header: object, body: object) =>
      [header, body]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
    const confused = signWith({ alg: 'HS256', kid }, claims);
    const hints = {
      'another client': await idTokenOf(browser, forum),
      'another issuer': await hub.signingKeys.sign({ ...claims, iss: 'https://evil' }, 'RS256'),
      'several clients': await hub.signingKeys.sign(
        { ...claims, aud: ['service-wiki', 'x'] },
        'RS256',
      ),
      'no signature': new UnsecuredJWT(claims).encode(),
      'another key': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid })
        .sign(privateKey),
      'the public key as a secret': `${confused}.${createHmac('sha256', n).update(confused).digest('base64url')}`,
      'no token': 'hint',
      'an access token': await hub.obtainToken(browser),
    };
    for (const [name, id_token_hint] of Object.entries(hints)) {
      expect([name, errorOf(await ask(browser, { id_token_hint }))]).toEqual([
        name,
        'invalid_request',
      ]);
    }
  });
});

describe('claims', () => {
  test('§5.5 asks for single ones, of which each needs a consent', async () => {
    const browser = await hub.login('ada');
    const info = { displayName: 'Ada', email: 'ada@example.org', pictureUrl: undefined };
    await hub.userInfo.change(browser.user, {
      ...info,
      isEmailVerified: true,
      authenticator: undefined,
    });
    const claims = JSON.stringify({
      userinfo: { email: { essential: true }, nickname: null },
      id_token: { auth_time: null },
    });
    const token = await hub.obtainToken(browser, { scope: 'openid', claims });
    const headers = { authorization: `Bearer ${token}` };
    const answer = await hub.request(hub.endpoint('userinfo'), { headers });
    expect(await answer.json()).toEqual({ sub: browser.user.id, email: 'ada@example.org' });
    expect(
      errorOf(await ask(browser, { claims: '{"id_token":{"name":null}}', prompt: 'none' })),
    ).toBe('consent_required');
  });

  test('§5.5.1 a sub of another user, and an essential acr that is not met, give no code', async () => {
    const browser = await known();
    const withClaim = async (id_token: object) =>
      errorOf(await ask(browser, { claims: JSON.stringify({ id_token }) }));
    expect(await withClaim({ sub: { value: browser.user.id } })).toBeNull();
    expect(await withClaim({ sub: { value: 'another' } })).toBe('login_required');
    expect(await withClaim({ acr: { values: ['mfa'] } })).toBeNull();
    expect(await withClaim({ acr: { essential: true, values: ['mfa'] } })).toBe(
      'interaction_required',
    );
  });

  test.each([
    '',
    '{',
    '[]',
    '7',
    'null',
    '{"id_token":7}',
    `{"id_token":{"${'x'.repeat(5000)}":1}}`,
  ])('never break on %j', async (claims) => {
    const answer = await ask(await known(), { claims });
    expect(answer.status).toBe(302);
    expect([null, 'invalid_request']).toContain(errorOf(answer));
  });
});

test.each(['request', 'request_uri', 'registration'])(
  '§3.1.2.6 %s is refused by its own error',
  async (name) => {
    expect(errorOf(await ask(await known(), { [name]: 'x' }))).toBe(`${name}_not_supported`);
  },
);

test('no parameter may come twice', async () => {
  for (const name of ['prompt', 'max_age', 'id_token_hint', 'claims', 'nonce']) {
    const parameters = new URLSearchParams([...Object.entries(request), [name, '1'], [name, '1']]);
    expect(errorOf(await hub.authorize(parameters, await known()))).toBe('invalid_request');
  }
});
