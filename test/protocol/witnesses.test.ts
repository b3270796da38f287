import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import * as oauth from 'oauth4webapi';
import * as openidClient from 'openid-client';
import { describe, expect, test } from 'vitest';
import { pathOf, requires } from '../support/requires.ts';
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
    const checks = { expectedState, idTokenExpected: true };
    await expect(
      openidClient.authorizationCodeGrant(client, await visit(hub, url), {
        ...checks,
        expectedNonce: openidClient.randomNonce(),
      }),
    ).rejects.toMatchObject({ cause: { cause: { claim: 'nonce' } } });
    const tokens = await openidClient.authorizationCodeGrant(client, await visit(hub, url), {
      ...checks,
      expectedNonce,
      maxAge: 3600,
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

/** Each is given issuer, client, secret and callback; it prints where it sends its user, reads where that comes back, and prints whom it knows then. */
const programs = {
  'python3-authlib': `
import json, sys
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import jwt
from authlib.oidc.core import CodeIDToken
issuer, client, secret, callback = sys.argv[1:]
session = OAuth2Session(client, secret, scope='openid profile', redirect_uri=callback, code_challenge_method='S256')
get = lambda url: session.request('GET', url, withhold_token=True).json()
server = get(issuer + '/.well-known/openid-configuration')
url, state = session.create_authorization_url(server['authorization_endpoint'], nonce='of-authlib', code_verifier='v' * 48)
print(url, flush=True)
tokens = session.fetch_token(server['token_endpoint'], authorization_response=input(), state=state, code_verifier='v' * 48)
options = {'iss': {'essential': True, 'value': issuer}, 'aud': {'essential': True, 'value': client}}
params = {'nonce': 'of-authlib', 'client_id': client, 'access_token': tokens['access_token']}
claims = jwt.decode(tokens['id_token'], get(server['jwks_uri']), CodeIDToken, options, params)
claims.validate()
user = session.get(server['userinfo_endpoint']).json()
print(json.dumps([claims['sub'], user['preferred_username']]))`,
  'python3-social-auth-core': `
import json, sys
from urllib.parse import parse_qs, urlsplit
from social_core.backends.open_id_connect import OpenIdConnectAuth, OpenIdConnectAssociation
from social_core.storage import BaseStorage
from social_core.strategy import BaseStrategy
issuer, client, secret, callback = sys.argv[1:]
kept = {}
class Associations:
    @staticmethod
    def store(server_url, association): kept['association'] = association; association.id = 1
    @staticmethod
    def get(**query): return [kept['association']] if kept['association'].handle == query['handle'] else []
    @staticmethod
    def remove(ids): pass
class Storage(BaseStorage):
    association = Associations
class Strategy(BaseStrategy):
    settings = {'SOCIAL_AUTH_OIDC_OIDC_ENDPOINT': issuer, 'SOCIAL_AUTH_OIDC_KEY': client, 'SOCIAL_AUTH_OIDC_SECRET': secret}
    data = {}
    def get_setting(self, name): return self.settings[name]
    def session_get(self, name, default=None): return kept.get(name, default)
    def session_set(self, name, value): kept[name] = value
    def session_pop(self, name): return kept.pop(name, None)
    def request_data(self, merge=True): return self.data
    def request_host(self): return urlsplit(callback).netloc
    def build_absolute_uri(self, path=None): return callback
    def authenticate(self, backend, *args, **kwargs): return kwargs['response']
strategy = Strategy(Storage)
backend = OpenIdConnectAuth(strategy, callback)
print(backend.auth_url(), flush=True)
backend.data = {name: values[0] for name, values in parse_qs(urlsplit(input()).query).items()}
user = backend.complete()
print(json.dumps([backend.id_token['sub'], user['preferred_username']]))`,
  'ruby-omniauth-openid-connect': `
require 'json'
require 'rack'
require 'omniauth_openid_connect'
issuer, client, secret, callback = ARGV
SWD.url_builder = URI::HTTP
OmniAuth.config.logger.level = Logger::FATAL
OmniAuth.config.request_validation_phase = nil
OmniAuth.config.allowed_request_methods = [:get]
path = URI(callback).path
app = Rack::Builder.new do
  use Rack::Session::Cookie, secret: 's' * 64
  use OmniAuth::Builder do
    provider :openid_connect, issuer: issuer, discovery: true, scope: %i[openid profile], pkce: true,
      callback_path: path, client_options: { identifier: client, secret: secret, redirect_uri: callback }
  end
  run ->(env) { [200, {}, [[env['omniauth.auth'].uid, env['omniauth.auth'].info.nickname].to_json]] }
end
browser = Rack::MockRequest.new(app)
begun = browser.get("#{callback[0...-path.length]}/auth/openid_connect")
puts begun['Location']
STDOUT.flush
cookie = begun['Set-Cookie'].split(';').first
ended = browser.get(STDIN.gets.chomp, 'HTTP_COOKIE' => cookie)
puts ended.status == 200 ? ended.body : ended['Location']`,
} as const;

describe.each(Object.entries(programs))('%s', (name, program) => {
  test.skipIf(!requires(name as keyof typeof programs))(
    'logs a user in by OpenID Connect',
    async () => {
      await using hub = await startAuthorizationServer();
      const callback = `${hub.origin}/services/wiki/oauth_callback`;
      const [option, path] = [
        name.startsWith('ruby') ? '-e' : '-c',
        pathOf(name as keyof typeof programs),
      ];
      const args = [option, program, hub.issuer, 'service-wiki', wiki.secret, callback];
      const client = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'] });
      const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
      const { value: url = '' } = await lines.next();
      client.stdin.end(`${await visit(hub, new URL(url))}\n`);
      const { value: known = '' } = await lines.next();
      const { id } = await hub.users.getByName('alice');
      expect(JSON.parse(known)).toEqual([id, 'alice']);
    },
  );
});
