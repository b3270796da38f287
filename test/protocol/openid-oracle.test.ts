import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OidcProvider, providerClient, startOidcProvider } from '../support/oidc-provider.ts';
import {
  type AuthorizationServerHarness,
  basic,
  pkcePair,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

/**
 * The same requests to the hub and to `oidc-provider`, which is certified: the answers are alike. Not asked: `claims`, which
 * that passes over unless it is set up for it.
 */
describe('as oidc-provider answers', () => {
  const hubUrl = 'http://127.0.0.1:1/';
  const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
  let hub: AuthorizationServerHarness;
  let provider: OidcProvider;
  let sides: { ours: Side; theirs: Side };
  interface Side {
    readonly id: string;
    readonly secret: string;
    readonly redirectUri: string;
    readonly configuration: Record<string, unknown>;
  }

  beforeAll(async () => {
    [hub, provider] = await Promise.all([
      startAuthorizationServer({ services: [{ ...wiki, grants: ['device'] }] }),
      startOidcProvider({ hubUrl, client: { grant_types: ['authorization_code', deviceGrant] } }),
    ]);
    const configurationOf = async (issuer: string) =>
      (await fetch(`${issuer}/.well-known/openid-configuration`)).json() as Promise<
        Record<string, unknown>
      >;
    sides = {
      ours: {
        id: 'service-wiki',
        secret: wiki.secret,
        redirectUri: `${hub.origin}/services/wiki/oauth_callback`,
        configuration: await configurationOf(hub.issuer),
      },
      theirs: {
        id: providerClient.client_id,
        secret: providerClient.client_secret,
        redirectUri: `${hubUrl}hub/oauth_callback`,
        configuration: await configurationOf(provider.issuer),
      },
    };
  });
  afterAll(async () => {
    await provider[Symbol.asyncDispose]();
    await hub[Symbol.asyncDispose]();
  });

  /** Where an authorization request leads: to an error of the client, to a page, or on to the login. */
  async function outcomeOf(side: Side, more: Record<string, string>): Promise<string> {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: side.id,
      redirect_uri: side.redirectUri,
      scope: 'openid',
      state: 's',
      code_challenge: pkcePair().challenge,
      code_challenge_method: 'S256',
    });
    for (const [name, value] of Object.entries(more)) {
      if (value === '') query.delete(name);
      else query.set(name, value);
    }
    const url = `${side.configuration['authorization_endpoint']}?${query}`;
    const answer = await fetch(url, { redirect: 'manual' });
    const location = answer.headers.get('location');
    if (location === null) return answer.status < 400 ? 'page' : 'error page';
    const target = new URL(location, side.redirectUri);
    const parameters = target.searchParams;
    if (!target.href.startsWith(side.redirectUri)) return 'login';
    return `${parameters.get('error')} ${parameters.get('state')} ${parameters.has('iss')}`;
  }

  test.each<Record<string, string>>([
    {},
    { scope: 'openid unheard-of' },
    { prompt: 'none' },
    { prompt: 'none', max_age: '10' },
    { prompt: 'none login' },
    { prompt: 'login' },
    { prompt: 'consent' },
    { max_age: '0' },
    { max_age: 'soon' },
    { id_token_hint: 'none', prompt: 'none' },
    { request_uri: 'https://app/request' },
    { response_type: '' },
    { client_id: 'unknown' },
    { redirect_uri: 'https://evil.example/' },
    { code_challenge: 'short' },
    { code_challenge_method: 'plain' },
  ])('the authorization endpoint answers %j', async (more) => {
    expect(await outcomeOf(sides.ours, more)).toBe(await outcomeOf(sides.theirs, more));
  });

  test.each<Record<string, string>>([
    {},
    { grant_type: 'unheard-of' },
    { grant_type: 'authorization_code' },
    { grant_type: 'authorization_code', code: 'guessed', redirect_uri: 'https://evil.example/' },
    { grant_type: deviceGrant },
    { grant_type: deviceGrant, device_code: 'guessed' },
    { grant_type: deviceGrant, device_code: 'pending' },
  ])('the token endpoint refuses %j', async (form) => {
    const [ours, theirs] = await Promise.all(
      [sides.ours, sides.theirs].map(async ({ id, secret, configuration }) => {
        const post = (endpoint: string, body: Record<string, string>) =>
          fetch(String(configuration[endpoint]), {
            method: 'POST',
            headers: basic(id, secret),
            body: new URLSearchParams(body),
          });
        const isPending = form['device_code'] === 'pending';
        const begun = isPending
          ? await (await post('device_authorization_endpoint', { scope: 'openid' })).json()
          : {};
        const { device_code, ...codes } = begun as Record<string, string>;
        if (isPending) expect(Object.keys(codes)).toContain('verification_uri_complete');
        const answer = await post('token_endpoint', { ...form, ...(isPending && { device_code }) });
        return [answer.status, ((await answer.json()) as { error: string }).error];
      }),
    );
    expect(ours).toEqual(theirs);
  });

  test.each<Record<string, string>>([
    {},
    { client_id: '' },
    { redirect_uri: 'https://evil.example/' },
    { response_type: 'unheard-of' },
    { prompt: 'none login' },
  ])('a pushed request is answered: %j', async (more) => {
    const [ours, theirs] = await Promise.all(
      [sides.ours, sides.theirs].map(async ({ id, secret, redirectUri, configuration }) => {
        const answer = await fetch(String(configuration['pushed_authorization_request_endpoint']), {
          method: 'POST',
          headers: basic(id, secret),
          body: new URLSearchParams({
            response_type: 'code',
            client_id: id,
            redirect_uri: redirectUri,
            scope: 'openid',
            code_challenge: pkcePair().challenge,
            code_challenge_method: 'S256',
            ...more,
          }),
        });
        const body = (await answer.json()) as Record<string, unknown>;
        return [answer.status, body['error'] ?? Object.keys(body).sort()];
      }),
    );
    expect(ours).toEqual(theirs);
  });

  test('UserInfo refuses an unknown token with the same status and challenge', async () => {
    const [ours, theirs] = await Promise.all(
      [sides.ours, sides.theirs].map(async ({ configuration }) => {
        const headers = { authorization: 'Bearer unknown' };
        const answer = await fetch(String(configuration['userinfo_endpoint']), { headers });
        const challenge = answer.headers.get('www-authenticate') ?? '';
        return [answer.status, /error="(\w+)"/.exec(challenge)?.[1]];
      }),
    );
    expect(ours).toEqual(theirs);
  });
});
