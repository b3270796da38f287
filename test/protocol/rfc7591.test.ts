import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPasswordHub } from '../support/password-hub.ts';
import { tokenOf } from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

/** OAuth 2.0 Dynamic Client Registration Protocol, and its Management Protocol (RFC 7592). */
const adminToken = 'admin-service-token';
const redirect_uris = ['https://app.example.org/callback'];

let hub: TestHub;
beforeAll(async () => {
  hub = await createPasswordHub();
});
afterAll(() => hub[Symbol.asyncDispose]());

async function register(metadata: object, token: string | undefined = adminToken) {
  const init = { method: 'POST', body: JSON.stringify(metadata) };
  const answer = await hub.api('/oauth2/register', token, init);
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const authenticate = async (form: Record<string, string>) => {
  const body = new URLSearchParams({ grant_type: 'authorization_code', code: 'none', ...form });
  const answer = await fetch(`${hub.apiUrl}/oauth2/token`, { method: 'POST', body });
  return ((await answer.json()) as { error: string }).error;
};

test('§3.2.1 answers with the id, the secret and what is registered, and the client may use them at once', async () => {
  const { status, body } = await register({
    redirect_uris,
    client_name: 'Not\u202ees\n',
    grant_types: ['authorization_code', 'refresh_token'],
    backchannel_logout_uri: 'https://app.example.org/logout',
    unheard_of: true,
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    client_id: expect.stringMatching(/^client-/),
    client_secret: expect.any(String),
    client_secret_expires_at: 0,
    client_id_issued_at: expect.any(Number),
    registration_client_uri: expect.stringMatching(/\/hub\/api\/oauth2\/register\/client-/),
    registration_access_token: expect.any(String),
    post_logout_redirect_uris: [],
    client_name: 'Not es',
    redirect_uris,
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    id_token_signed_response_alg: 'RS256',
    backchannel_logout_uri: 'https://app.example.org/logout',
  });
  const [client_id, client_secret] = [String(body['client_id']), String(body['client_secret'])];
  expect(await authenticate({ client_id, client_secret })).toBe('invalid_grant');
  expect(await authenticate({ client_id, client_secret: 'wrong' })).toBe('invalid_client');
  const service = await (await hub.api(`/services/${client_id}`, adminToken)).json();
  expect(service).toMatchObject({
    source: 'api',
    info: { title: 'Not es', registered_by: expect.any(String) },
  });
  await hub.api(`/services/${client_id}`, adminToken, { method: 'DELETE' });
  expect(await authenticate({ client_id, client_secret })).toBe('invalid_client');
});

test('§2 a public client gets no secret', async () => {
  const { body } = await register({
    redirect_uris: ['http://127.0.0.1/callback'],
    token_endpoint_auth_method: 'none',
  });
  expect(body).not.toHaveProperty('client_secret');
  expect(await authenticate({ client_id: String(body['client_id']) })).toBe('invalid_grant');
});

test('§3 is open to nobody: it takes a token that may', async () => {
  expect((await register({ redirect_uris }, '')).status).toBe(403);
  expect((await register({ redirect_uris }, await tokenOf(hub, 'bob'))).status).toBe(403);
});

describe('§3.2.2 refuses', () => {
  test.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'http://app.example.org/callback',
    'https://app.example.org/callback#x',
    'https://10.1.2.3/callback',
    'https://192.168.0.1/callback',
    'https://[fd00::1]/callback',
    'https://[::ffff:10.0.0.1]/callback',
    'https://169.254.169.254/callback',
    'https://[64:ff9b::a00:1]/callback',
    'https://localhost/callback',
    'https://ada.localhost/callback',
    'https://intranet/callback',
    '/callback',
  ])('the redirect URI %s', async (uri) => {
    const { status, body } = await register({ redirect_uris: [uri] });
    expect([status, body['error']]).toEqual([400, 'invalid_redirect_uri']);
  });

  test.each<[string, object]>([
    ['addresses of this machine to log out', { backchannel_logout_uri: 'https://127.0.0.1/out' }],
    ['a jwks_uri that is not public', { jwks_uri: 'http://app.example.org/jwks' }],
    [
      'a jwks_uri in a private network',
      { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://10.1.2.3/jwks' },
    ],
    ['metadata of the cloud to log out', { backchannel_logout_uri: 'https://169.254.169.254/' }],
    ['a script to go to after a logout', { post_logout_redirect_uris: ['javascript:alert(1)'] }],
    ['keys beside a secret', { jwks_uri: 'https://app.example.org/jwks' }],
    ['no keys', { token_endpoint_auth_method: 'private_key_jwt' }],
    ['a grant that is not for it', { grant_types: ['client_credentials'] }],
    ['the implicit flow', { response_types: ['id_token'] }],
    ['an unsigned ID token', { id_token_signed_response_alg: 'none' }],
    [
      'a key that is no key',
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'oct' }] } },
    ],
  ])('%s', async (_what, more) => {
    const { status, body } = await register({ redirect_uris, ...more });
    expect([status, body['error']]).toEqual([400, 'invalid_client_metadata']);
  });
});

describe('RFC 7592', () => {
  async function registered(metadata: object = {}, initial?: string) {
    const { body } = await register({ redirect_uris, client_name: 'Notes', ...metadata }, initial);
    const { client_id, client_secret, registration_access_token: own } = body;
    const ask = async (method: string, sent?: object, token = String(own)) => {
      const init = { method, ...(sent && { body: JSON.stringify({ client_id, ...sent }) }) };
      const answer = await hub.api(`/oauth2/register/${String(client_id)}`, token, init);
      const text = await answer.text();
      return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as object };
    };
    return { id: String(client_id), secret: String(client_secret), own: String(own), ask };
  }

  test('§2.1 the client reads what is registered, by its own token alone', async () => {
    const [client, other] = [await registered(), await registered()];
    const { status, body } = await client.ask('GET');
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({
        client_id: client.id,
        client_name: 'Notes',
        redirect_uris,
        grant_types: ['authorization_code'],
        registration_access_token: client.own,
        registration_client_uri: expect.stringContaining(`/hub/api/oauth2/register/${client.id}`),
      }),
    ]);
    for (const method of ['GET', 'PUT', 'DELETE'])
      expect(
        (await client.ask(method, method === 'PUT' ? { redirect_uris } : undefined, other.own))
          .status,
      ).toBe(404);
    expect((await client.ask('GET', undefined, 'wrong')).status).toBe(403);
    expect((await register({ redirect_uris }, client.own)).status).toBe(403);
  });

  test('§2.2 the client replaces it; what is left out goes, its secret and what administrators set stay', async () => {
    const { id, secret, own, ask } = await registered({ grant_types: ['refresh_token'] });
    const change = { display: true, oauth_grants: ['refresh', 'token_exchange'] };
    const changed = { method: 'PATCH', body: JSON.stringify(change) };
    expect((await hub.api(`/services/${id}`, adminToken, changed)).status).toBe(200);
    const metadata = { redirect_uris: ['https://app.example.org/other'], contacts: ['ada'] };
    const { status, body } = await ask('PUT', { client_secret: secret, ...metadata });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({
        ...metadata,
        registration_access_token: own,
        grant_types: ['authorization_code'],
      }),
    ]);
    expect(body).not.toHaveProperty('client_name');
    expect((await ask('GET')).body).toEqual(body);
    expect(await (await hub.api(`/services/${id}`, adminToken)).json()).toMatchObject({
      display: true,
      info: { contact: 'ada', registered_by: expect.any(String) },
    });
    expect(await authenticate({ client_id: id, client_secret: secret })).toBe('invalid_grant');
  });

  test.each([
    ['the id of another', { client_id: 'service-wiki' }],
    ['another secret', { client_secret: 'one-of-its-own' }],
    ['a way to do without', { token_endpoint_auth_method: 'none' }],
  ])('§2.2 refuses %s', async (_what, more) => {
    const { ask } = await registered();
    const { status, body } = await ask('PUT', { redirect_uris, ...more });
    expect([status, body]).toMatchObject([400, { error: 'invalid_client_metadata' }]);
  });

  test('§2.3 the client deletes itself, and its token ends', async () => {
    const { id, secret, own, ask } = await registered({}, await tokenOf(hub, 'ada'));
    expect((await ask('DELETE')).status).toBe(204);
    expect((await hub.api('/user', own)).status).toBe(403);
    expect(await authenticate({ client_id: id, client_secret: secret })).toBe('invalid_client');
  });
});
