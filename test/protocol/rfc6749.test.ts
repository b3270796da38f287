import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  basic,
  errorOf,
  forum,
  responseParameters,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const services = [
  { ...wiki, allowedScopes: ['read:servers!user'] },
  { ...forum, redirectUris: ['https://forum.example/cb?keep=%20me'] },
];
const request = { response_type: 'code', client_id: 'service-wiki', state: 'xyz' };
const asWiki = basic('service-wiki', wiki.secret);

let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer({ services });
  return () => hub[Symbol.asyncDispose]();
});

async function newCode(parameters: Record<string, string> = {}): Promise<string> {
  return await hub.obtainCode(await hub.login('alice'), parameters);
}

const grantOf = (code: string) => ({ grant_type: 'authorization_code', code });

describe('client authentication', () => {
  test('§2.2 the client identifier MUST NOT be used alone for client authentication', async () => {
    const response = await hub.post('token', {
      ...grantOf(await newCode()),
      client_id: 'service-wiki',
    });
    expect(response.status).toBe(401);
  });

  test('§2.3 the client MUST NOT use more than one authentication method in each request', async () => {
    const response = await hub.post(
      'token',
      { ...grantOf(await newCode()), client_id: 'service-wiki', client_secret: wiki.secret },
      asWiki,
    );
    expect([response.status, await errorOf(response)]).toEqual([400, 'invalid_request']);
  });

  test('§2.3.1 the authorization server MUST support HTTP Basic for clients with a password', async () => {
    expect((await hub.post('token', grantOf(await newCode()), asWiki)).status).toBe(200);
  });

  test('§2.3.1 the client identifier and secret in HTTP Basic are form-encoded', async () => {
    const encoded = { ...wiki, name: 'odd', secret: 'a+b %c:d/ü0123' };
    await using odd = await startAuthorizationServer({ services: [encoded] });
    const code = await odd.obtainCode(await odd.login('alice'), { client_id: 'service-odd' });
    const answer = await odd.post('token', grantOf(code), basic('service-odd', encoded.secret));
    expect(answer.status).toBe(200);
  });

  test('§2.3.1 the authorization server MAY support credentials in the request body', async () => {
    const credentials = { client_id: 'service-wiki', client_secret: wiki.secret };
    const response = await hub.post('token', { ...grantOf(await newCode()), ...credentials });
    expect(response.status).toBe(200);
  });

  test('§2.3.1 the credentials MUST NOT be included in the request URI', async () => {
    const query = new URLSearchParams({ client_id: 'service-wiki', client_secret: wiki.secret });
    const body = new URLSearchParams(grantOf(await newCode()));
    const response = await hub.request(`${hub.endpoint('token')}?${query}`, {
      method: 'POST',
      body,
    });
    expect([response.status, await errorOf(response)]).toEqual([400, 'invalid_request']);
  });

  test('§2.3.1 the authorization server MUST protect the endpoint against brute force', async () => {
    let response: Response | undefined;
    for (let attempt = 0; attempt <= 30; attempt += 1) {
      response = await hub.post('token', grantOf('x'), basic('service-wiki', `guess ${attempt}`));
    }
    expect(response!.status).toBe(429);
    expect(Number(response!.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('authorization endpoint', () => {
  test('§3.1 MUST first verify the identity of the resource owner', async () => {
    const response = await hub.authorize(request);
    expect(response.headers.get('location')).toContain('/hub/login');
  });

  test('§3.1 the endpoint URI MUST NOT include a fragment component', () => {
    expect(hub.endpoint('authorize')).not.toContain('#');
  });

  test('§3.1 MUST support GET', async () => {
    expect((await hub.authorize(request, await hub.login('alice'))).status).toBe(200);
  });

  test('§3.1 parameters sent without a value MUST be treated as omitted', async () => {
    const parameters = { ...request, redirect_uri: '', scope: '', code_challenge: '' };
    expect((await hub.authorize(parameters, await hub.login('alice'))).status).toBe(200);
    const withoutType = await hub.authorize({ ...request, response_type: '' });
    expect(responseParameters(withoutType).get('error')).toBe('invalid_request');
  });

  test('§3.1 MUST ignore unrecognized request parameters, even repeated ones', async () => {
    const parameters = new URLSearchParams([
      ...Object.entries(request),
      ['what', '1'],
      ['what', '2'],
    ]);
    expect((await hub.authorize(parameters, await hub.login('alice'))).status).toBe(200);
  });

  test.each(['response_type', 'scope', 'state', 'code_challenge', 'code_challenge_method'])(
    '§3.1 request parameters MUST NOT be included more than once: %s',
    async (name) => {
      const parameters = new URLSearchParams({ ...request, [name]: 'code' });
      parameters.append(name, 'code');
      const response = await hub.authorize(parameters, await hub.login('alice'));
      expect(responseParameters(response).get('error')).toBe('invalid_request');
    },
  );

  test.each(['client_id', 'redirect_uri'])(
    '§3.1 request parameters MUST NOT be included more than once, and %s decides where to redirect',
    async (name) => {
      const parameters = new URLSearchParams(request);
      parameters.append(name, 'service-wiki');
      parameters.append(name, 'service-wiki');
      const response = await hub.authorize(parameters, await hub.login('alice'));
      expect([response.status, response.headers.get('location')]).toEqual([400, null]);
    },
  );

  test('§3.1.1 MUST return an error response when response_type is missing', async () => {
    const response = await hub.authorize({ client_id: 'service-wiki', state: 'xyz' });
    expect(responseParameters(response).get('error')).toBe('invalid_request');
  });

  test.each(['token', 'code token', 'id_token', 'CODE'])(
    '§3.1.1 MUST return an error response when response_type is not understood: %s',
    async (response_type) => {
      const response = await hub.authorize({ ...request, response_type });
      expect(responseParameters(response).get('error')).toBe('unsupported_response_type');
    },
  );

  test('§3.1.2 a query component of the redirection endpoint MUST be retained', async () => {
    const parameters = { response_type: 'code', client_id: 'service-forum' };
    const response = await hub.decide(parameters, await hub.login('alice'));
    expect(response.headers.get('location')).toMatch(
      /^https:\/\/forum\.example\/cb\?keep=%20me&code=/,
    );
  });

  test('§3.1.2.3 MUST compare the redirection URI with simple string comparison', async () => {
    const parameters = { response_type: 'code', client_id: 'service-forum' };
    const alice = await hub.login('alice');
    for (const [redirect_uri, status] of [
      ['https://forum.example/cb?keep=%20me', 200],
      ['https://forum.example/cb?keep=+me', 400],
      ['https://FORUM.example/cb?keep=%20me', 400],
      ['https://forum.example/cb', 400],
    ] as const) {
      expect((await hub.authorize({ ...parameters, redirect_uri }, alice)).status).toBe(status);
    }
  });

  test('§3.1.2.4 MUST NOT redirect to an invalid redirection URI, and SHOULD inform the resource owner', async () => {
    const alice = await hub.login('alice');
    const response = await hub.request(
      hub.authorizationUrl({ ...request, redirect_uri: 'https://evil.example/' }),
      { headers: { ...alice.headers, Accept: 'text/html', 'Sec-Fetch-Mode': 'navigate' } },
    );
    expect([response.status, response.headers.get('location')]).toEqual([400, null]);
    expect(response.headers.get('content-type')).toContain('text/html');
  });
});

describe('authorization response', () => {
  test('§4.1.2 the code and the state come in the query of the redirection URI', async () => {
    const response = await hub.decide(request, await hub.login('alice'));
    const location = new URL(response.headers.get('location')!);
    expect(response.status).toBe(302);
    expect(location.searchParams.get('code')).toMatch(/^[\w-]{16,}$/);
    expect(location.hash).toBe('');
  });

  test('§4.1.2 the state is the exact value received from the client', async () => {
    const state = 'ä +&=%#"<\u0000>\n💡';
    const response = await hub.decide({ ...request, state }, await hub.login('alice'));
    expect(responseParameters(response).get('state')).toBe(state);
  });

  test('§4.1.2 there is no state when the request had none', async () => {
    const { state: _, ...stateless } = request;
    const response = await hub.decide(stateless, await hub.login('alice'));
    expect(responseParameters(response).has('state')).toBe(false);
  });

  test('§4.1.2 the code MUST expire shortly after it is issued, RECOMMENDED within ten minutes', async () => {
    const code = await newCode();
    hub.skipSeconds(301);
    expect(await errorOf(await hub.exchange(code))).toBe('invalid_grant');
  });

  test('§4.1.2 a code used more than once MUST be denied, and its tokens SHOULD be revoked', async () => {
    const code = await newCode();
    const { access_token } = (await (await hub.exchange(code)).json()) as { access_token: string };
    expect(await hub.tokenVerifier.verify(access_token)).toBeDefined();
    expect(await errorOf(await hub.exchange(code))).toBe('invalid_grant');
    expect(await hub.tokenVerifier.verify(access_token)).toBeUndefined();
  });

  test('§4.1.2 the code is bound to the client identifier and redirection URI', async () => {
    const redirect_uri = '/services/wiki/oauth_callback';
    const otherClient = hub.post(
      'token',
      { ...grantOf(await newCode({ redirect_uri })), redirect_uri },
      basic('service-forum', forum.secret),
    );
    expect(await errorOf(await otherClient)).toBe('invalid_grant');
    const otherUri = hub.exchange(await newCode({ redirect_uri }), { redirect_uri: '/elsewhere' });
    expect(await errorOf(await otherUri)).toBe('invalid_grant');
  });

  test('§4.1.2.1 MUST NOT redirect when the client identifier is missing or invalid', async () => {
    for (const client_id of ['', 'service-nobody', 'hub-user-nobody', 'wiki']) {
      const response = await hub.authorize({
        ...request,
        client_id,
        redirect_uri: 'https://x.example/',
      });
      expect([response.status, response.headers.get('location')]).toEqual([400, null]);
    }
  });

  test('§4.1.2.1 access_denied when the resource owner denies, with the state', async () => {
    const denied = await hub.decide(request, await hub.login('alice'), { decision: 'deny' });
    expect(responseParameters(denied).get('error')).toBe('access_denied');
    expect(responseParameters(denied).get('state')).toBe('xyz');
  });

  test('§4.1.2.1 invalid_scope when the scope is unknown, malformed or not allowed', async () => {
    const alice = await hub.login('alice');
    for (const scope of ['unknown', 'read:servers!user  read:users', 'admin:users']) {
      const response = await hub.authorize({ ...request, scope }, alice);
      expect(responseParameters(response).get('error')).toBe('invalid_scope');
    }
  });

  test('§4.1.2.1 error_description MUST NOT include characters outside %x20-21 / %x23-5B / %x5D-7E', async () => {
    const response = await hub.authorize({ ...request, scope: 'a!' }, await hub.login('alice'));
    expect(responseParameters(response).get('error_description')).toMatch(
      /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/,
    );
  });
});

describe('token endpoint', () => {
  test('§3.2 the client MUST use POST', async () => {
    const query = new URLSearchParams(grantOf(await newCode()));
    const response = await hub.request(`${hub.endpoint('token')}?${query}`, { headers: asWiki });
    expect(response.status).toBe(405);
  });

  test('§3.2 parameters sent without a value MUST be treated as omitted', async () => {
    const response = await hub.exchange(await newCode(), { redirect_uri: '', code_verifier: '' });
    expect(response.status).toBe(200);
    expect(await errorOf(await hub.exchange(''))).toBe('invalid_request');
  });

  test('§3.2 MUST ignore unrecognized request parameters', async () => {
    expect((await hub.exchange(await newCode(), { what: 'ever' })).status).toBe(200);
  });

  test.each(['grant_type', 'code', 'redirect_uri', 'code_verifier', 'client_id', 'client_secret'])(
    '§3.2 request parameters MUST NOT be included more than once: %s',
    async (name) => {
      const form = new URLSearchParams(grantOf(await newCode()));
      if (!form.has(name)) form.append(name, 'x');
      form.append(name, form.get(name)!);
      const response = await hub.post('token', form, asWiki);
      expect([response.status, await errorOf(response)]).toEqual([400, 'invalid_request']);
    },
  );

  test('§3.2.1 confidential clients MUST authenticate', async () => {
    const response = await hub.post('token', grantOf(await newCode()));
    expect([response.status, await errorOf(response)]).toEqual([401, 'invalid_client']);
  });

  test('§4.1.3 the request is application/x-www-form-urlencoded', async () => {
    const response = await hub.request(hub.endpoint('token'), {
      method: 'POST',
      headers: { ...asWiki, 'Content-Type': 'application/json' },
      body: JSON.stringify(grantOf(await newCode())),
    });
    expect([response.status, await errorOf(response)]).toEqual([400, 'invalid_request']);
  });

  test('§4.1.3 MUST authenticate the client if client authentication is included', async () => {
    const response = await hub.post(
      'token',
      grantOf(await newCode()),
      basic('service-wiki', 'wrong'),
    );
    expect(await errorOf(response)).toBe('invalid_client');
  });

  test('§4.1.3 MUST ensure that the authorization code was issued to the authenticated client', async () => {
    const asForum = basic('service-forum', forum.secret);
    const response = await hub.post('token', grantOf(await newCode()), asForum);
    expect([response.status, await errorOf(response)]).toEqual([400, 'invalid_grant']);
  });

  test('§4.1.3 a code that another client presents after its use ends what it gave', async () => {
    const code = await newCode();
    const { access_token } = (await (await hub.exchange(code)).json()) as { access_token: string };
    await hub.post('token', grantOf(code), basic('service-forum', forum.secret));
    expect(await hub.tokenVerifier.verify(access_token)).toBeUndefined();
  });

  test('§4.1.3 MUST verify that the authorization code is valid', async () => {
    expect(await errorOf(await hub.exchange('SplxlOBeZQQYbYS6WxSbIA'))).toBe('invalid_grant');
  });

  test('§4.1.3 MUST ensure that redirect_uri is present if it was in the authorization request', async () => {
    const code = await newCode({ redirect_uri: '/services/wiki/oauth_callback' });
    expect(await errorOf(await hub.exchange(code))).toBe('invalid_grant');
  });

  test('§4.1.3 MUST ensure that redirect_uri is identical', async () => {
    const redirect_uri = '/services/wiki/oauth_callback';
    const wrong = await hub.exchange(await newCode({ redirect_uri }), {
      redirect_uri: `${redirect_uri}/`,
    });
    expect(await errorOf(wrong)).toBe('invalid_grant');
    const absolute = await hub.exchange(await newCode({ redirect_uri }), {
      redirect_uri: hub.origin + redirect_uri,
    });
    expect(absolute.status).toBe(200);
  });

  test('§4.1.3 a redirect_uri that the authorization request left out must be the registered one', async () => {
    const redirect_uri = '/services/wiki/oauth_callback';
    expect((await hub.exchange(await newCode(), { redirect_uri })).status).toBe(200);
    const other = await hub.exchange(await newCode(), {
      redirect_uri: '/services/forum/oauth_callback',
    });
    expect(await errorOf(other)).toBe('invalid_grant');
  });

  test('§5.1 the response has access_token, token_type, expires_in and scope', async () => {
    const response = await hub.exchange(await newCode({ scope: 'read:servers!user' }));
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('application/json');
    expect(await response.json()).toEqual({
      access_token: expect.stringMatching(/^hub_/),
      token_type: 'Bearer',
      expires_in: 1_209_600,
      scope: 'read:servers!user',
    });
  });

  test('§5.1 MUST include Cache-Control: no-store and Pragma: no-cache', async () => {
    for (const response of [await hub.exchange(await newCode()), await hub.exchange('wrong')]) {
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('pragma')).toBe('no-cache');
    }
  });

  test('§5.1 the access token lasts expires_in seconds', async () => {
    const token = await hub.obtainToken(await hub.login('alice'));
    hub.skipSeconds(1_209_590);
    expect(await hub.tokenVerifier.verify(token)).toBeDefined();
    hub.skipSeconds(11);
    expect(await hub.tokenVerifier.verify(token)).toBeUndefined();
  });

  test('§5.2 a failed HTTP Basic authentication MUST be answered with 401 and WWW-Authenticate', async () => {
    const response = await hub.post('token', grantOf('x'), basic('service-wiki', 'wrong'));
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic /);
    expect(await errorOf(response)).toBe('invalid_client');
  });

  test('§5.2 errors are 400 with JSON members error and error_description', async () => {
    const response = await hub.exchange('wrong');
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: 'invalid_grant',
      error_description: expect.stringMatching(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/),
    });
  });

  test('§5.2 invalid_request when a required parameter is missing', async () => {
    expect(await errorOf(await hub.post('token', { code: 'x' }, asWiki))).toBe('invalid_request');
    const withoutCode = await hub.post('token', { grant_type: 'authorization_code' }, asWiki);
    expect(await errorOf(withoutCode)).toBe('invalid_request');
  });

  test.each(['password', 'implicit', 'urn:ietf:params:oauth:grant-type:jwt-bearer'])(
    '§5.2 unsupported_grant_type for %s',
    async (grant_type) => {
      const response = await hub.post('token', { grant_type, code: 'x' }, asWiki);
      expect([response.status, await errorOf(response)]).toEqual([400, 'unsupported_grant_type']);
    },
  );

  test('§5.2 unauthorized_client for a grant that the client may not use', async () => {
    const form = { grant_type: 'refresh_token', refresh_token: 'x' };
    const response = await hub.post('token', form, asWiki);
    expect([response.status, await errorOf(response)]).toEqual([400, 'unauthorized_client']);
  });

  test('refuses a body over its limit', async () => {
    const response = await hub.post(
      'token',
      { ...grantOf('x'), padding: 'x'.repeat(100_000) },
      asWiki,
    );
    expect([response.status, await errorOf(response)]).toEqual([400, 'invalid_request']);
  });
});

describe('scope', () => {
  test('§3.3 the scope parameter tells the client what was granted', async () => {
    await hub.roles.apply({
      save: [
        {
          ...(await hub.roles.getByName('user')),
          scopes: ['read:users:name!user', 'access:services!service=wiki'],
        },
      ],
    });
    const response = await hub.exchange(await newCode({ scope: 'read:servers!user' }));
    const { scope } = (await response.json()) as { scope: string };
    expect(scope.split(' ')).not.toContain('read:servers!user');
  });

  test('§3.3 scope values are case-sensitive', async () => {
    const response = await hub.authorize(
      { ...request, scope: 'READ:servers!user' },
      await hub.login('alice'),
    );
    expect(responseParameters(response).get('error')).toBe('invalid_scope');
  });

  test('§3.3 a request without scope gets the default', async () => {
    const response = await hub.exchange(await newCode());
    const { scope } = (await response.json()) as { scope: string };
    expect(scope.split(' ')).toContain('read:servers!user');
  });
});

describe('security considerations', () => {
  test('§10.10 codes and tokens cannot be guessed: at least 128 bits', async () => {
    const code = await newCode();
    const { access_token } = (await (await hub.exchange(code)).json()) as { access_token: string };
    expect(Buffer.from(code, 'base64url').length).toBeGreaterThanOrEqual(16);
    expect(
      Buffer.from(access_token.replace('hub_', ''), 'base64url').length,
    ).toBeGreaterThanOrEqual(16);
  });

  test('§10.3 and §10.5 codes and tokens are not kept in a form that could be used', async () => {
    const [code, another] = [await newCode(), await newCode()];
    const { access_token } = (await (await hub.exchange(code)).json()) as { access_token: string };
    const stored = JSON.stringify([
      await hub.database.kysely.selectFrom('authorization_codes').selectAll().execute(),
      await hub.database.kysely.selectFrom('access_tokens').selectAll().execute(),
    ]);
    for (const secret of [code, another, access_token]) expect(stored).not.toContain(secret);
  });

  test('§10.12 MUST implement CSRF protection for the authorization endpoint', async () => {
    const alice = await hub.login('alice');
    const response = await hub.decide(request, alice, { decision: 'allow', csrf: '' });
    expect(response.status).toBe(403);
  });

  test('§10.13 MUST prevent the consent page from being framed', async () => {
    const response = await hub.authorize(request, await hub.login('alice'));
    expect(response.headers.get('x-frame-options')).toBe('DENY');
    expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  });

  test('§10.15 MUST NOT be an open redirector', async () => {
    const response = await hub.authorize({ redirect_uri: 'https://evil.example/' });
    expect([response.status, response.headers.get('location')]).toEqual([400, null]);
  });
});
