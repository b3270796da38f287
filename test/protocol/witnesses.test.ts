import * as oauth from 'oauth4webapi';
import * as openidClient from 'openid-client';
import { describe, expect, test } from 'vitest';
import { type AuthorizationServerHarness, startAuthorizationServer, wiki } from './harness.ts';

/** Lets the user `alice` visit an authorization URL and allow it; gives the redirection URL. */
async function visit(hub: AuthorizationServerHarness, url: URL): Promise<URL> {
  const response = await hub.decide(url.searchParams, await hub.login('alice'));
  return new URL(response.headers.get('location')!);
}

describe.each(['/', '/team/'])('with the hub below %s', (basePath) => {
  test('openid-client completes discovery, PKCE, the flow, introspection and revocation', async () => {
    await using hub = await startAuthorizationServer({ basePath });
    const client = await openidClient.discovery(
      new URL(hub.issuer),
      'service-wiki',
      undefined,
      openidClient.ClientSecretBasic(wiki.secret),
      { algorithm: 'oauth2', execute: [openidClient.allowInsecureRequests] },
    );
    expect(client.serverMetadata().supportsPKCE()).toBe(true);

    const pkceCodeVerifier = openidClient.randomPKCECodeVerifier();
    const expectedState = openidClient.randomState();
    const url = openidClient.buildAuthorizationUrl(client, {
      redirect_uri: `${hub.origin}${basePath}services/wiki/oauth_callback`,
      code_challenge: await openidClient.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      state: expectedState,
    });
    const tokens = await openidClient.authorizationCodeGrant(client, await visit(hub, url), {
      pkceCodeVerifier,
      expectedState,
    });
    expect(tokens.token_type).toBe('bearer');
    expect(tokens.expiresIn()).toBeGreaterThan(1_209_000);

    const resource = new URL(hub.userResource);
    const user = await openidClient.fetchProtectedResource(
      client,
      tokens.access_token,
      resource,
      'GET',
    );
    expect(await user.json()).toMatchObject({ name: 'alice' });

    const introspected = await openidClient.tokenIntrospection(client, tokens.access_token);
    expect(introspected).toMatchObject({ active: true, username: 'alice' });
    await openidClient.tokenRevocation(client, tokens.access_token);
    expect(await openidClient.tokenIntrospection(client, tokens.access_token)).toEqual({
      active: false,
    });
  });

  test('openid-client completes OpenID Connect: discovery, nonce, max_age, ID token and UserInfo', async () => {
    await using hub = await startAuthorizationServer({ basePath });
    const client = await openidClient.discovery(
      new URL(hub.issuer),
      'service-wiki',
      undefined,
      openidClient.ClientSecretPost(wiki.secret),
      { execute: [openidClient.allowInsecureRequests, openidClient.enableNonRepudiationChecks] },
    );
    const [expectedNonce, expectedState] = [openidClient.randomNonce(), openidClient.randomState()];
    const url = openidClient.buildAuthorizationUrl(client, {
      redirect_uri: `${hub.origin}${basePath}services/wiki/oauth_callback`,
      scope: 'openid profile groups',
      nonce: expectedNonce,
      state: expectedState,
      max_age: '3600',
    });
    const tokens = await openidClient.authorizationCodeGrant(client, await visit(hub, url), {
      expectedNonce,
      expectedState,
      maxAge: 3600,
      idTokenExpected: true,
    });
    const { sub = '' } = tokens.claims() ?? {};
    expect(await openidClient.fetchUserInfo(client, tokens.access_token, sub)).toEqual({
      sub,
      preferred_username: 'alice',
      groups: [],
    });
  });

  test('oauth4webapi completes discovery, PKCE and the flow, and refuses another issuer', async () => {
    await using hub = await startAuthorizationServer({ basePath });
    const options = { [oauth.allowInsecureRequests]: true };
    const issuer = new URL(hub.issuer);
    const server = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...options }),
    );
    const client: oauth.Client = { client_id: 'service-wiki' };
    const redirectUri = `${hub.origin}${basePath}services/wiki/oauth_callback`;

    const codeVerifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const url = new URL(server.authorization_endpoint!);
    url.search = String(
      new URLSearchParams({
        client_id: client.client_id,
        response_type: 'code',
        redirect_uri: redirectUri,
        code_challenge: await oauth.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
        state,
      }),
    );
    const redirection = await visit(hub, url);
    const mixedUp = new URL(redirection);
    mixedUp.searchParams.set('iss', 'https://evil.example');
    expect(() => oauth.validateAuthResponse(server, client, mixedUp, state)).toThrow('iss');

    const parameters = oauth.validateAuthResponse(server, client, redirection, state);
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      oauth.ClientSecretPost(wiki.secret),
      parameters,
      redirectUri,
      codeVerifier,
      options,
    );
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response);
    expect(tokens.scope).toContain('access:services!service=wiki');
  });

  test('oauth4webapi understands a refusal', async () => {
    await using hub = await startAuthorizationServer({ basePath });
    const server: oauth.AuthorizationServer = {
      issuer: hub.issuer,
      token_endpoint: hub.endpoint('token'),
      authorization_response_iss_parameter_supported: true,
    };
    const client: oauth.Client = { client_id: 'service-wiki' };
    const denied = await hub.decide(
      { client_id: 'service-wiki', response_type: 'code', state: 'xyz' },
      await hub.login('alice'),
      { decision: 'deny' },
    );
    const location = new URL(denied.headers.get('location')!);
    expect(() => oauth.validateAuthResponse(server, client, location, 'xyz')).toThrow(
      expect.objectContaining({ error: 'access_denied' }),
    );
  });
});
