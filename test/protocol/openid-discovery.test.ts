import { describe, expect, test } from 'vitest';
import { startAuthorizationServer } from './harness.ts';

const wellKnown = '/.well-known/openid-configuration';

/** `fetch` would else ask past all caches. */
const having = (etag: string) => ({ 'If-None-Match': etag, 'Cache-Control': 'max-age=0' });

/** OpenID Connect Discovery 1.0, incorporating errata set 2. */
describe('the configuration of an OpenID Provider', () => {
  test('§4.1 is found below the path of the issuer, and §4.3 names that issuer', async () => {
    for (const basePath of ['/', '/team/']) {
      await using hub = await startAuthorizationServer({ basePath });
      const answer = await hub.request(hub.issuer + wellKnown);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toContain('application/json');
      const configuration = (await answer.json()) as Record<string, unknown>;
      expect(configuration['issuer']).toBe(hub.issuer);
      const path = new URL(hub.issuer).pathname.replace(/\/$/, '');
      const other = `${hub.origin}/.well-known/oauth-authorization-server${path}`;
      expect(await (await hub.request(other)).json()).toEqual(configuration);
    }
  });

  test('§3 has what is REQUIRED, and RS256 MUST be among the algorithms', async () => {
    await using hub = await startAuthorizationServer();
    expect(await (await hub.request(hub.issuer + wellKnown)).json()).toMatchObject({
      authorization_endpoint: hub.endpoint('authorize'),
      token_endpoint: hub.endpoint('token'),
      jwks_uri: hub.endpoint('jwks'),
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: expect.arrayContaining(['RS256', 'ES256']),
    });
  });

  test('§4 it and the keys are not sent again to who has them, and new keys are', async () => {
    await using hub = await startAuthorizationServer();
    for (const url of [hub.issuer + wellKnown, hub.endpoint('jwks')]) {
      const first = await hub.request(url);
      const etag = first.headers.get('etag') ?? '';
      expect(etag).toMatch(/^"[\w-]{22}"$/);
      expect(first.headers.get('content-type')).toBe('application/json; charset=utf-8');
      const again = await hub.request(url, { headers: having(etag) });
      expect([again.status, await again.text()]).toEqual([304, '']);
      expect(again.headers.get('cache-control')).toBe('public, max-age=300');
    }
    const keys = await hub.request(hub.endpoint('jwks'));
    await hub.signingKeys.rotate();
    const headers = having(keys.headers.get('etag') ?? '');
    const rotated = await hub.request(hub.endpoint('jwks'), { headers });
    expect(rotated.status).toBe(200);
    expect(await rotated.json()).toMatchObject({ keys: { length: 4 } });
  });

  test('§3 the keys at jwks_uri MUST NOT contain private ones, and say what they are for', async () => {
    await using hub = await startAuthorizationServer();
    const answer = await hub.request(hub.endpoint('jwks'));
    const { keys } = (await answer.json()) as { keys: Record<string, unknown>[] };
    expect(keys.map(({ alg, use, kty }) => [alg, use, kty]).sort()).toEqual([
      ['ES256', 'sig', 'EC'],
      ['RS256', 'sig', 'RSA'],
    ]);
    for (const key of keys) expect(Object.keys(key)).not.toContain('d');
  });
});
