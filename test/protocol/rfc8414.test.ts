import { beforeEach, describe, expect, test } from 'vitest';
import { type AuthorizationServerHarness, startAuthorizationServer } from './harness.ts';

const wellKnown = '/.well-known/oauth-authorization-server';
let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  return () => hub[Symbol.asyncDispose]();
});

type Metadata = Record<string, unknown> & { issuer: string; token_endpoint: string };

async function metadataOf(url: string): Promise<Metadata> {
  const response = await hub.request(url);
  expect(response.status).toBe(200);
  return (await response.json()) as Metadata;
}

describe('metadata', () => {
  test('§2 the issuer is a URL without query or fragment', async () => {
    const { issuer } = await metadataOf(hub.origin + wellKnown);
    const url = new URL(issuer);
    expect([url.search, url.hash]).toEqual(['', '']);
    expect(issuer).not.toMatch(/[?#]/);
  });

  test('§2 names the endpoints that answer', async () => {
    const metadata = await metadataOf(hub.origin + wellKnown);
    for (const name of ['token', 'introspection', 'revocation']) {
      const response = await hub.request(String(metadata[`${name}_endpoint`]), { method: 'POST' });
      expect([400, 401]).toContain(response.status);
    }
    expect((await hub.request(String(metadata['authorization_endpoint']))).status).toBe(400);
  });

  test('§2 says what is supported', async () => {
    expect(await metadataOf(hub.origin + wellKnown)).toMatchObject({
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: expect.arrayContaining([
        'authorization_code',
        'refresh_token',
        'client_credentials',
      ]),
      token_endpoint_auth_methods_supported: [
        'client_secret_basic',
        'client_secret_post',
        'private_key_jwt',
        'none',
      ],
      revocation_endpoint_auth_methods_supported: expect.arrayContaining(['none']),
      code_challenge_methods_supported: ['S256'],
      scopes_supported: expect.arrayContaining(['inherit', 'read:users', 'access:services']),
    });
  });

  test('§3.2 members with no values are left out', async () => {
    for (const value of Object.values(await metadataOf(hub.origin + wellKnown))) {
      expect(value).not.toEqual([]);
      expect(value).not.toBeNull();
    }
  });

  test('§3.2 MUST be 200 with application/json', async () => {
    const response = await hub.request(hub.origin + wellKnown);
    expect(response.headers.get('content-type')).toContain('application/json');
  });
});

describe('discovery', () => {
  test('§3.3 the issuer MUST be identical to the one the well-known path was made from', async () => {
    expect((await metadataOf(hub.origin + wellKnown)).issuer).toBe(hub.origin);
  });

  test('§3.1 a path of the issuer goes behind the well-known one', async () => {
    await using team = await startAuthorizationServer({ basePath: '/team/' });
    const metadata = await metadataOf(`${team.origin}${wellKnown}/team`);
    expect(metadata.issuer).toBe(`${team.origin}/team`);
    expect(metadata.token_endpoint).toBe(`${team.origin}/team/hub/api/oauth2/token`);
    expect(await metadataOf(`${team.origin}/team${wellKnown}`)).toEqual(metadata);
    expect((await team.request(team.origin + wellKnown)).status).toBe(404);
  });
});
