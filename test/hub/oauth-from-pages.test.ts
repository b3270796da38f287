import { expect, test } from 'vitest';
import { createTestHub } from '../support/test-hub.ts';

test('a page of a client reads what it asks with a token or a code, and nothing else of the hub', async () => {
  await using hub = await createTestHub();
  const allowed = async (path: string, method: string) => {
    const headers = { origin: 'https://app.example' };
    const answer = await fetch(new URL(path, hub.url), { method, headers });
    return [path, answer.status < 500, answer.headers.get('access-control-allow-origin')];
  };
  for (const [path, method] of [
    ['.well-known/openid-configuration', 'GET'],
    ['.well-known/oauth-authorization-server', 'GET'],
    ['hub/api/oauth2/jwks', 'GET'],
    ['hub/api/oauth2/userinfo', 'OPTIONS'],
    ['hub/api/oauth2/userinfo', 'GET'],
    ['hub/api/oauth2/token', 'POST'],
    ['hub/api/oauth2/revoke', 'POST'],
  ] as const) {
    expect(await allowed(path, method)).toEqual([path, true, '*']);
  }
  for (const path of ['hub/api/oauth2/introspect', 'hub/api/oauth2/authorize', 'hub/api/users'])
    expect(await allowed(path, 'POST')).toEqual([path, true, null]);
});
