import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  forum,
  pkcePair,
  responseParameters,
  type ShownConsent,
  startAuthorizationServer,
  wiki,
} from '../../../../test/protocol/harness.ts';
import { createGroup } from '../../../../test/support/create-group.ts';

const services = [
  { ...wiki, allowedScopes: ['read:servers!user', 'list:users', 'read:users:activity!user'] },
  { ...forum, skipsConsent: true },
  {
    name: 'reports',
    secret: 'reports-secret-012345',
    redirectUris: ['https://reports.example/cb?x=1'],
    isPublic: false,
  },
];
const request = { response_type: 'code', client_id: 'service-wiki', state: 'a state' };

let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer({ services });
  return () => hub[Symbol.asyncDispose]();
});

async function shownConsent(response: Response): Promise<ShownConsent> {
  expect(response.status).toBe(200);
  return (await response.json()) as ShownConsent;
}

describe('login', () => {
  test('sends a browser without a login to the login page, with the way back', async () => {
    const response = await hub.authorize(request);
    expect(response.status).toBe(302);
    const location = new URL(response.headers.get('location')!, hub.origin);
    expect(location.pathname).toBe('/hub/login');
    expect(location.searchParams.get('next')).toContain('/hub/api/oauth2/authorize?');
    expect(location.searchParams.get('next')).toContain('state=a+state');
  });

  test('checks the request before it asks for a login', async () => {
    const response = await hub.authorize({ ...request, client_id: 'service-nobody' });
    expect(response.status).toBe(400);
  });

  test('sends a consent form whose login has ended to the login page', async () => {
    const response = await hub.decide(request, undefined);
    expect(response.headers.get('location')).toContain('/hub/login');
  });
});

describe('access', () => {
  test('refuses a user who may not reach the client', async () => {
    await hub.roles.apply({ save: [{ ...(await hub.roles.getByName('user')), scopes: ['self'] }] });
    const response = await hub.authorize(request, await hub.login('alice'));
    expect(response.status).toBe(403);
    expect(response.headers.get('location')).toBeNull();
  });

  test('refuses the consent form of a user who lost access since the page was shown', async () => {
    const alice = await hub.login('alice');
    await shownConsent(await hub.authorize(request, alice));
    await hub.roles.apply({ save: [{ ...(await hub.roles.getByName('user')), scopes: ['self'] }] });
    const response = await hub.decide(request, alice);
    expect(response.status).toBe(403);
  });

  test("refuses a visitor of another user's server", async () => {
    await hub.createServerOf((await hub.login('alice')).user);
    const server = { response_type: 'code', client_id: 'hub-user-alice' };
    expect((await hub.authorize(server, await hub.login('bob'))).status).toBe(403);
  });

  test('lets a group in that holds access', async () => {
    await hub.roles.apply({ save: [{ ...(await hub.roles.getByName('user')), scopes: ['self'] }] });
    const alice = await hub.login('alice');
    await createGroup(hub.groups, { name: 'team' });
    await hub.groups.addMembers('team', ['alice'], 'api');
    await hub.roles.apply({
      save: [
        {
          name: 'wiki-readers',
          description: '',
          scopes: ['access:services!service=wiki'],
          origin: 'api',
        },
      ],
    });
    await hub.roles.apply({
      assign: [
        {
          roleName: 'wiki-readers',
          subjectKind: 'group',
          subjectName: 'team',
          origin: 'api',
        },
      ],
    });
    await shownConsent(await hub.authorize(request, alice));
  });
});

describe('consent', () => {
  test('shows who asks, what for and where the browser goes', async () => {
    const alice = await hub.login('alice');
    const { view } = await shownConsent(await hub.authorize(request, alice));
    expect(view).toMatchObject({
      clientName: 'wiki',
      clientKind: 'service',
      redirectHost: new URL(hub.origin).host,
      leavesHub: false,
      exceedingOwn: [],
      isAdministration: false,
    });
    expect(view.scopes.map(({ scope }) => scope)).toContain('read:servers!user');
    expect(view.scopes.every(({ description }) => description !== '')).toBe(true);
  });

  test('says what an administrator would give away, and that it leads elsewhere', async () => {
    const redirectUri = 'https://elsewhere.example/callback';
    const greedy = { ...wiki, allowedScopes: ['inherit'], redirectUris: [redirectUri] };
    await using other = await startAuthorizationServer({ services: [greedy] });
    const asked = { ...request, redirect_uri: redirectUri, scope: 'inherit' };
    const root = await other.login('root');
    const before = await shownConsent(await other.authorize(asked, root));
    expect(before.view).toMatchObject({ isAdministration: false, leavesHub: true });
    await other.users.setAdmin(root.user.id, true);
    const { view } = await shownConsent(await other.authorize(asked, root));
    expect(view.isAdministration).toBe(true);
    expect(view.exceedingOwn.map(({ scope }) => scope)).toEqual(
      expect.arrayContaining(['admin:users', 'shutdown']),
    );
  });

  test('gives a code when the user allows', async () => {
    const alice = await hub.login('alice');
    const response = await hub.decide(request, alice);
    expect(response.status).toBe(302);
    expect(response.headers.get('location')).toMatch(
      new RegExp(`^${hub.origin}/services/wiki/oauth_callback\\?code=`),
    );
    expect(responseParameters(response).get('state')).toBe('a state');
  });

  test('tells the client when the user denies', async () => {
    const response = await hub.decide(request, await hub.login('alice'), { decision: 'deny' });
    const parameters = responseParameters(response);
    expect(parameters.get('error')).toBe('access_denied');
    expect(parameters.get('state')).toBe('a state');
    expect(parameters.has('code')).toBe(false);
  });

  test('refuses a form without a decision', async () => {
    const response = await hub.decide(request, await hub.login('alice'), { decision: 'perhaps' });
    expect(response.status).toBe(400);
  });

  test('refuses a form that another site made', async () => {
    const alice = await hub.login('alice');
    const response = await hub.decide(request, alice, { decision: 'allow', csrf: 'guess' });
    expect(response.status).toBe(403);
  });

  test('checks the whole request again when the form comes', async () => {
    const alice = await hub.login('alice');
    const parameters = { ...request, redirect_uri: 'https://evil.example/' };
    expect((await hub.decide(parameters, alice)).status).toBe(400);
    const plain = { ...request, code_challenge: pkcePair().challenge };
    expect(responseParameters(await hub.decide(plain, alice)).get('error')).toBe('invalid_request');
  });

  test('takes no request from the form', async () => {
    const alice = await hub.login('alice');
    const body = new URLSearchParams({
      ...request,
      decision: 'allow',
      csrf: `csrf-${alice.sessionId}`,
    });
    const { headers } = alice;
    const response = await hub.request(hub.endpoint('authorize'), {
      method: 'POST',
      body,
      headers,
    });
    expect(response.status).toBe(400);
  });

  test('gives no more than the form showed', async () => {
    const alice = await hub.login('alice');
    const response = await hub.decide(request, alice, [
      ['decision', 'allow'],
      ['scopes', 'read:users:activity!user'],
      ['scopes', 'admin:users'],
    ]);
    const token = await (await hub.exchange(responseParameters(response).get('code')!)).json();
    expect((token as { scope: string }).scope.split(' ').sort()).toEqual([
      'access:services!service=wiki',
      'read:users:activity!user',
      'read:users:groups!user',
      'read:users:name!user',
    ]);
  });

  test("is skipped for a user's own server", async () => {
    const alice = await hub.login('alice');
    await hub.createServerOf(alice.user);
    const response = await hub.authorize(
      {
        response_type: 'code',
        client_id: 'hub-user-alice',
        redirect_uri: '/user/alice/oauth_callback',
      },
      alice,
    );
    expect(response.headers.get('location')).toContain(
      `${hub.origin}/user/alice/oauth_callback?code=`,
    );
  });

  test("is asked for on another user's server", async () => {
    await hub.createServerOf((await hub.login('alice')).user);
    const root = await hub.login('root');
    await hub.users.setAdmin(root.user.id, true);
    const server = { response_type: 'code', client_id: 'hub-user-alice' };
    const { view } = await shownConsent(await hub.authorize(server, root));
    expect(view).toMatchObject({ clientKind: 'server', ownerUserName: 'alice' });
  });

  test('is skipped for a client that the operator trusts', async () => {
    const response = await hub.authorize(
      { response_type: 'code', client_id: 'service-forum' },
      await hub.login('alice'),
    );
    expect(responseParameters(response).has('code')).toBe(true);
  });

  test('is skipped while an earlier token covers the scopes, and asked for again after it', async () => {
    const alice = await hub.login('alice');
    await hub.obtainToken(alice);
    const again = await hub.authorize(request, alice);
    expect(responseParameters(again).has('code')).toBe(true);
    hub.skipSeconds(1_209_601);
    await shownConsent(await hub.authorize(request, alice));
  });

  test('is asked for when an earlier token covers only a part', async () => {
    const alice = await hub.login('alice');
    await hub.obtainToken(alice, { scope: 'read:users:activity!user' });
    await shownConsent(await hub.authorize(request, alice));
  });

  test('is asked for by each user', async () => {
    await hub.obtainToken(await hub.login('alice'));
    await shownConsent(await hub.authorize(request, await hub.login('bob')));
  });
});

describe('redirect URI', () => {
  test('is the registered one when the request has none', async () => {
    const parameters = { response_type: 'code', client_id: 'service-reports' };
    const response = await hub.decide(parameters, await hub.login('alice'));
    const location = response.headers.get('location');
    expect(location).toMatch(/^https:\/\/reports\.example\/cb\?x=1&code=/);
  });

  test.each(['/services/wiki/oauth_callback', 'ORIGIN/services/wiki/oauth_callback'])(
    'may be sent as %s',
    async (redirectUri) => {
      const redirect_uri = redirectUri.replace('ORIGIN', hub.origin);
      const response = await hub.decide({ ...request, redirect_uri }, await hub.login('alice'));
      expect(response.headers.get('location')).toContain(
        `${hub.origin}/services/wiki/oauth_callback?code=`,
      );
    },
  );

  test.each([
    '/services/wiki/oauth_callback/',
    '/services/wiki/oauth_callback?x=1',
    '/services/wiki/oauth_callback#',
    '/services/wiki/./oauth_callback',
    '/services/wiki/../wiki/oauth_callback',
    '/services/wiki/%6fauth_callback',
    '/Services/wiki/oauth_callback',
    '//evil.example/services/wiki/oauth_callback',
    '/\\evil.example',
    '/services/forum/oauth_callback',
    'services/wiki/oauth_callback',
    'https://evil.example/services/wiki/oauth_callback',
    'ORIGIN@evil.example/services/wiki/oauth_callback',
    'ORIGIN.evil.example/services/wiki/oauth_callback',
    'http://user@127.0.0.1/services/wiki/oauth_callback',
    'http://127.0.0.1:1/services/wiki/oauth_callback',
    'HTTP://HOST/services/wiki/oauth_callback',
    'ORIGIN//services/wiki/oauth_callback',
    'javascript:alert(1)',
    'data:text/html,x',
  ])('is refused on an error page as %s', async (redirectUri) => {
    const redirect_uri = redirectUri
      .replace('ORIGIN', hub.origin)
      .replace('HOST', new URL(hub.origin).host);
    const response = await hub.authorize({ ...request, redirect_uri }, await hub.login('alice'));
    expect(response.status).toBe(400);
    expect(response.headers.get('location')).toBeNull();
  });

  test('does not follow the Host header', async () => {
    const alice = await hub.login('alice');
    await hub.obtainToken(alice);
    const response = await hub.request(hub.authorizationUrl(request), {
      headers: { ...alice.headers, 'X-Forwarded-Host': 'evil.example' },
    });
    expect(new URL(response.headers.get('location')!).origin).toBe(hub.origin);
  });
});

describe('scopes', () => {
  test('narrows an unfiltered scope to what the user holds', async () => {
    const alice = await hub.login('alice');
    const parameters = { ...request, scope: 'list:users' };
    const { view } = await shownConsent(await hub.authorize(parameters, alice));
    expect(view.grantedScopes).not.toContain('list:users');
  });

  test('tells the client when it asks for more than it is allowed', async () => {
    const response = await hub.authorize(
      { ...request, scope: 'admin:users' },
      await hub.login('alice'),
    );
    expect(responseParameters(response).get('error')).toBe('invalid_scope');
    expect(responseParameters(response).get('state')).toBe('a state');
  });
});

test('answers a request without a usable Host header', async () => {
  const { status } = await rawRequest({
    host: '@:x',
    path: hub.authorizationUrl(request).slice(hub.origin.length),
  });
  expect(status).toBe(302);
});

/** fetch would not send such a Host header. */
async function rawRequest({ host, path }: { host: string; path: string }) {
  const sent = httpRequest(hub.origin, { path, headers: { Host: host } });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  return { status: answer.statusCode };
}
