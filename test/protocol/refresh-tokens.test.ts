import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as openidClient from 'openid-client';
import { beforeEach, expect, test } from 'vitest';
import { deleteSession } from '../../src/platform/store/session-grants.ts';
import { pathOf, requires } from '../support/requires.ts';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  refusalOf,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const mail = { ...wiki, name: 'mail', grants: ['refresh'], mayOutliveLogin: true } as const;
const chat = { ...forum, name: 'chat', grants: ['refresh'] } as const;
const asMail = basic('service-mail', mail.secret);
const asChat = basic('service-chat', chat.secret);

let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer({
    services: [mail, chat, { ...wiki, secret: 'other-secret' }],
  });
  return () => hub[Symbol.asyncDispose]();
});

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly scope: string;
  readonly expires_in: number;
}
type Browser = Awaited<ReturnType<AuthorizationServerHarness['login']>>;

async function logIn(browser: Browser, scope = 'access:services!service=mail'): Promise<Tokens> {
  const code = await hub.obtainCode(browser, { client_id: 'service-mail', scope });
  const answer = await hub.post('token', { grant_type: 'authorization_code', code }, asMail);
  return (await answer.json()) as Tokens;
}

function refresh(refresh_token: string, more: Record<string, string> = {}, client = asMail) {
  return hub.post('token', { grant_type: 'refresh_token', refresh_token, ...more }, client);
}

async function refreshed(refreshToken: string): Promise<Tokens> {
  const answer = await refresh(refreshToken);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Tokens;
}

async function statusWith(token: string): Promise<number> {
  const answer = await hub.request(hub.userResource, {
    headers: { Authorization: `Bearer ${token}` },
  });
  return answer.status;
}

async function logOut({ sessionId }: Browser): Promise<void> {
  const { database } = hub;
  await database.transaction((transaction) => deleteSession(transaction, database, sessionId));
  database.announceChange({ kind: 'session_ended', sessionId });
}

test('RFC 6749 §6 openid-client refreshes an access token, and revokes what it has', async () => {
  const { refresh_token, expires_in } = await logIn(await hub.login('alice'));
  expect(expires_in).toBe(3600);
  const client = await openidClient.discovery(
    new URL(hub.issuer),
    'service-mail',
    undefined,
    openidClient.ClientSecretBasic(mail.secret),
    { algorithm: 'oauth2', execute: [openidClient.allowInsecureRequests] },
  );
  expect(client.serverMetadata().grant_types_supported).toContain('refresh_token');
  const tokens = await openidClient.refreshTokenGrant(client, refresh_token);
  expect(await statusWith(tokens.access_token)).toBe(200);
  await openidClient.tokenRevocation(client, tokens.refresh_token!);
  expect(await statusWith(tokens.access_token)).toBe(401);
  await expect(openidClient.refreshTokenGrant(client, tokens.refresh_token!)).rejects.toThrow();
});

test.skipIf(!requires('python3-requests-oauthlib'))(
  'RFC 6749 §5.1 an answer names the scopes that were asked for, as oauthlib wants it',
  async () => {
    const program = `
import json, os, sys
from requests_oauthlib import OAuth2Session
client, secret, url, code, resource, *scope = sys.argv[1:]
session = OAuth2Session(client, scope=scope)
first = session.fetch_token(url, code=code, client_secret=secret)
again = session.refresh_token(url, auth=(client, secret))
print(json.dumps([first['scope'], again['scope'], session.get(resource).json()['name']]))`;
    const client_id = 'service-mail';
    for (const scope of ['access:services!service=mail', 'identify', 'openid groups']) {
      const code = await hub.obtainCode(await hub.login('alice'), { client_id, scope });
      const tokenUrl = hub.endpoint('token');
      const names = scope.split(' ');
      const { stdout } = await promisify(execFile)(
        pathOf('python3-requests-oauthlib'),
        ['-c', program, client_id, mail.secret, tokenUrl, code, hub.userResource, ...names],
        { env: { OAUTHLIB_INSECURE_TRANSPORT: '1' } },
      );
      expect(JSON.parse(stdout)).toEqual([names, names, 'alice']);
    }
  },
);

test('RFC 6749 §6 the scope may be less than was granted, never more, and a refusal uses nothing', async () => {
  const asked = 'access:services!service=mail read:users:name!user';
  const { refresh_token, scope } = await logIn(await hub.login('alice'), asked);
  expect(scope.split(' ').toSorted()).toEqual(asked.split(' '));
  for (const wrong of ['admin:users', `${scope} self`, ' '])
    expect(await refusalOf(await refresh(refresh_token, { scope: wrong }))).toEqual([
      400,
      'invalid_scope',
    ]);
  const less = await refresh(refresh_token, { scope: 'read:users:name!user' });
  expect(await less.json()).toMatchObject({ scope: 'read:users:name!user' });
});

test('RFC 6749 §6 of the scopes of OpenID Connect fewer may be asked for, too', async () => {
  const { refresh_token } = await logIn(await hub.login('alice'), 'openid profile groups');
  const claimsWith = async (scope: string) => {
    const { access_token, ...tokens } = (await (
      await refresh(refresh_token, { scope })
    ).json()) as Tokens;
    const headers = { Authorization: `Bearer ${access_token}` };
    const info = await hub.request(hub.endpoint('userinfo'), { headers });
    return [tokens.scope, Object.keys((await info.json()) as object).sort()];
  };
  expect(await claimsWith('openid profile')).toEqual([
    'openid profile',
    ['preferred_username', 'sub'],
  ]);
  expect(await claimsWith('openid groups')).toEqual(['openid groups', ['groups', 'sub']]);
});

test('RFC 6749 §6 a token is bound to the client it was issued to', async () => {
  const { refresh_token } = await logIn(await hub.login('alice'));
  expect(await refusalOf(await refresh(refresh_token, {}, asChat))).toEqual([400, 'invalid_grant']);
  await refreshed(refresh_token);
});

test('RFC 6749 §5.2 a client that may not refresh gets no refresh token, and unauthorized_client', async () => {
  const code = await hub.obtainCode(await hub.login('alice'));
  const asWiki = basic('service-wiki', 'other-secret');
  const answer = await hub.post('token', { grant_type: 'authorization_code', code }, asWiki);
  expect(await answer.json()).not.toHaveProperty('refresh_token');
  expect(await refusalOf(await refresh('x', {}, asWiki))).toEqual([400, 'unauthorized_client']);
});

test('RFC 9700 §4.14.2 a refresh token used again after its grace ends all that came of it', async () => {
  const first = await logIn(await hub.login('alice'));
  const second = await refreshed(first.refresh_token);
  hub.skipSeconds(10);
  expect(await refusalOf(await refresh(first.refresh_token))).toEqual([400, 'invalid_grant']);
  expect(await refusalOf(await refresh(second.refresh_token))).toEqual([400, 'invalid_grant']);
  expect([await statusWith(first.access_token), await statusWith(second.access_token)]).toEqual([
    401, 401,
  ]);
});

test('an answer that was lost is given again within 10 seconds, in the same family', async () => {
  const { refresh_token } = await logIn(await hub.login('alice'));
  const lost = await refreshed(refresh_token);
  hub.skipSeconds(9);
  const again = await refreshed(refresh_token);
  hub.skipSeconds(10);
  // The lost one is in the hands of somebody else, after all.
  expect(await refusalOf(await refresh(lost.refresh_token))).toEqual([400, 'invalid_grant']);
  expect(await refusalOf(await refresh(again.refresh_token))).toEqual([400, 'invalid_grant']);
});

test('a replayed code ends the grant that it gave, too', async () => {
  const code = await hub.obtainCode(await hub.login('alice'), { client_id: 'service-mail' });
  const form = { grant_type: 'authorization_code', code };
  const tokens = (await (await hub.post('token', form, asMail)).json()) as Tokens;
  const next = await refreshed(tokens.refresh_token);
  await hub.post('token', form, asMail);
  expect(await statusWith(next.access_token)).toBe(401);
  expect(await refusalOf(await refresh(next.refresh_token))).toEqual([400, 'invalid_grant']);
});

test('a grant ends with its login, and offline_access lets it go on (OpenID Connect Core §11)', async () => {
  const alice = await hub.login('alice');
  const bound = await logIn(alice);
  // What was allowed for less does not allow this.
  const request = { client_id: 'service-mail', response_type: 'code', scope: 'offline_access' };
  expect((await hub.authorize(request, alice)).status).toBe(200);
  const offline = await logIn(alice, 'offline_access');
  expect(offline.scope).toContain('offline_access');
  await logOut(alice);
  expect(await refusalOf(await refresh(bound.refresh_token))).toEqual([400, 'invalid_grant']);
  expect([await statusWith(bound.access_token), await statusWith(offline.access_token)]).toEqual([
    401, 200,
  ]);
  const next = await refreshed(offline.refresh_token);
  hub.skipSeconds(89 * 24 * 3600);
  const later = await refreshed(next.refresh_token);
  hub.skipSeconds(90 * 24 * 3600);
  expect(await refusalOf(await refresh(later.refresh_token))).toEqual([400, 'invalid_grant']);
});

test('a login that has expired refreshes nothing, though it is still there', async () => {
  const { refresh_token } = await logIn(await hub.login('alice'));
  hub.skipSeconds(14 * 24 * 3600);
  expect(await refusalOf(await refresh(refresh_token))).toEqual([400, 'invalid_grant']);
});

test('offline_access is passed over for a client that may not have it', async () => {
  const alice = await hub.login('alice');
  const request = { client_id: 'service-chat', scope: 'offline_access' };
  const code = await hub.obtainCode(alice, request);
  const answer = await hub.post('token', { grant_type: 'authorization_code', code }, asChat);
  const { refresh_token, scope } = (await answer.json()) as Tokens;
  expect(scope).not.toContain('offline_access');
  await logOut(alice);
  expect(await refusalOf(await refresh(refresh_token, {}, asChat))).toEqual([400, 'invalid_grant']);
});

test('a user who lost the access to the client, or the account, gets no further token', async () => {
  const alice = await hub.login('alice');
  const { refresh_token } = await logIn(alice, 'offline_access');
  const [role] = [await hub.roles.findByName('user')];
  await hub.roles.apply({ save: [{ ...role!, scopes: ['self'] }] });
  hub.database.announceChange({ kind: 'rights_changed' });
  expect(await refusalOf(await refresh(refresh_token))).toEqual([400, 'invalid_grant']);
  await hub.roles.apply({ save: [role!] });
  hub.database.announceChange({ kind: 'rights_changed' });
  const next = await refreshed(refresh_token);
  await hub.users.delete(alice.user.id, { mayBeLast: true });
  expect(await refusalOf(await refresh(next.refresh_token))).toEqual([400, 'invalid_grant']);
});

test('a grant is listed with the tokens of its user, and ends when the application is revoked', async () => {
  const alice = await hub.login('alice');
  const { refresh_token } = await logIn(alice, 'offline_access');
  hub.skipSeconds(3601);
  const { id } = alice.user;
  expect(await hub.accessTokens.listOfUser(id)).toMatchObject([
    { clientId: 'service-mail', scopes: expect.arrayContaining(['offline_access']) },
  ]);
  await hub.accessTokens.revokeByClientAndUser('service-mail', id);
  expect(await hub.accessTokens.listOfUser(id)).toEqual([]);
  expect(await refusalOf(await refresh(refresh_token))).toEqual([400, 'invalid_grant']);
});
