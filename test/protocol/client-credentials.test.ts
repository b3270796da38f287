import * as openidClient from 'openid-client';
import { beforeEach, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  refusalOf,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const robot = { ...wiki, name: 'robot', grants: ['client_credentials'] } as const;
const asRobot = basic('service-robot', robot.secret);

let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer({ services: [robot, forum] });
  await hub.roles.apply({
    save: [
      { name: 'robots', description: '', scopes: ['list:users', 'read:metrics'], origin: 'api' },
    ],
    assign: [{ roleName: 'robots', subjectKind: 'service', subjectName: 'robot', origin: 'api' }],
  });
  hub.database.announceChange({ kind: 'rights_changed' });
  return () => hub[Symbol.asyncDispose]();
});

const ask = (form: Record<string, string> = {}, client = asRobot) =>
  hub.post('token', { grant_type: 'client_credentials', ...form }, client);

async function callerWith(token: string): Promise<unknown> {
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await hub.request(hub.userResource, { headers });
  return answer.status === 200 ? answer.json() : answer.status;
}

test('§4.4 openid-client gets a token for the service itself, for an hour', async () => {
  const client = await openidClient.discovery(
    new URL(hub.issuer),
    'service-robot',
    undefined,
    openidClient.ClientSecretPost(robot.secret),
    { algorithm: 'oauth2', execute: [openidClient.allowInsecureRequests] },
  );
  const tokens = await openidClient.clientCredentialsGrant(client);
  expect(await callerWith(tokens.access_token)).toMatchObject({
    kind: 'service',
    name: 'robot',
    scopes: expect.arrayContaining(['list:users', 'read:metrics']),
  });
  hub.skipSeconds(3601);
  expect(await callerWith(tokens.access_token)).toBe(401);
});

test('§4.4.3 it comes without a refresh token, and with no more than the scope that was asked for', async () => {
  const body = (await (await ask({ scope: 'read:metrics' })).json()) as { access_token: string };
  expect(body).toMatchObject({ scope: 'read:metrics', expires_in: 3600 });
  expect(body).not.toHaveProperty('refresh_token');
  expect(await callerWith(body.access_token)).toMatchObject({ scopes: ['read:metrics'] });
});

test.each(['admin:users', 'read:metrics shares', 'no-such-scope', ' '])(
  '§5.2 invalid_scope for %j, which its roles do not allow',
  async (scope) => {
    expect(await refusalOf(await ask({ scope }))).toEqual([400, 'invalid_scope']);
  },
);

test('§4.4 only confidential clients that are configured for it, with their secret', async () => {
  const asForum = basic('service-forum', forum.secret);
  expect(await refusalOf(await ask({}, asForum))).toEqual([400, 'unauthorized_client']);
  const guessed = basic('service-robot', 'guessed');
  expect(await refusalOf(await ask({}, guessed))).toEqual([401, 'invalid_client']);
});
