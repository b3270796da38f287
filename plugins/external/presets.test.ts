import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AuthenticatorPlugin, ExternalAuthenticator } from '../../src/plugin/plugin.ts';
import { authenticatorContract, createTestHost } from '../../test/contract/testing.ts';
import { anyRequest, loginWithPlugin } from '../../test/support/plugin-login.ts';
import {
  type ScriptedProvider,
  sendJson,
  startScriptedProvider,
} from '../../test/support/scripted-provider.ts';
import auth0 from '../auth0.ts';
import github from '../github.ts';
import gitlab from '../gitlab.ts';
import google from '../google.ts';
import keycloak from '../keycloak.ts';
import microsoft from '../microsoft.ts';
import oauth2 from '../oauth2.ts';
import oidc from '../oidc.ts';
import okta from '../okta.ts';

let provider: ScriptedProvider;

beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(async () => {
  await provider?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  provider.script = {};
  provider.idClaims = {};
  provider.userinfo = {};
});

const client = { client_id: 'the-hub', client_secret: 'secret' };
const alice = { email: 'alice@example.org', email_verified: true };

describe.for([
  ['oidc', oidc, { issuer: 'https://login.example.org' }],
  ['keycloak', keycloak, { issuer: 'https://login.example.org/realms/staff' }],
  ['okta', okta, { issuer: 'https://example.okta.com' }],
  ['auth0', auth0, { domain: 'example.eu.auth0.com' }],
  ['gitlab', gitlab, {}],
  ['google', google, {}],
  ['microsoft', microsoft, {}],
  ['github', github, {}],
  [
    'oauth2',
    oauth2,
    {
      authorize_url: 'https://a.example/a',
      token_url: 'https://a.example/t',
      userdata_url: 'https://a.example/u',
    },
  ],
] as readonly (readonly [string, AuthenticatorPlugin, object])[])(
  '%s',
  ([name, plugin, options]) => {
    // Nobody is asked in this suite: the providers are out of reach.
    test.for(
      authenticatorContract({
        plugin: plugin,
        options: { ...client, ...options, request_timeout: 0.001 },
      }),
    )('keeps the contract: $name', ({ run }) => run());

    test('a misspelt or unencrypted setting is an error (GHSA-384w-5v3f-q499)', async () => {
      const host = await createTestHost();
      expect(plugin.optionsSchema.safeParse({ ...options, allowed_group: ['a'] }).success).toBe(
        false,
      );
      const url = 'http://login.example.org';
      const insecure =
        name === 'github'
          ? { github_url: url }
          : name === 'oauth2'
            ? { ...options, token_url: url }
            : { issuer: url };
      const parsed = plugin.optionsSchema.safeParse({ ...insecure, allow_insecure_requests: true });
      expect(parsed.success, JSON.stringify(parsed.error?.issues)).toBe(true);
      const found = plugin.findProblems?.(parsed.data, host) ?? [];
      expect(found.map(({ message }) => message)).toContain('must begin with https://');
    });
  },
);

describe.for([
  ['oidc', oidc],
  ['keycloak', keycloak],
  ['okta', okta],
  ['auth0', auth0],
  ['gitlab', gitlab],
  ['google', google],
  ['microsoft', microsoft],
] as readonly (readonly [string, AuthenticatorPlugin<unknown, ExternalAuthenticator>])[])(
  '%s at a provider',
  ([, plugin]) => {
    const login = (options: object = {}) =>
      loginWithPlugin(plugin, { ...client, issuer: provider.issuer, ...options }, provider);

    test('identifies by issuer and subject', async () => {
      provider.idClaims = alice;
      const { result } = await login();
      expect(result).toMatchObject({
        outcome: 'authenticated',
        user: {
          issuer: provider.issuer,
          subject: 'subject-1',
          display: 'alice@example.org',
          info: { email: 'alice@example.org', isEmailVerified: true },
        },
      });
      expect(result?.outcome === 'authenticated' && 'allowed' in result.user).toBe(false);
    });

    // Config test: none of these restrictions may be silently without effect (GHSA-gprj-3p75-f996).
    test.for<readonly [string, object, object, object]>([
      [
        'allowed_domains',
        { allowed_domains: ['example.org'] },
        alice,
        { ...alice, email: 'a@evil.example' },
      ],
      [
        'allowed_groups',
        { groups_claim: 'groups', allowed_groups: ['staff'] },
        { groups: ['staff'] },
        { groups: ['other'] },
      ],
      [
        'nested groups',
        { groups_claim: 'a.b', allowed_groups: ['staff'] },
        { a: { b: ['staff'] } },
        { a: { b: [] } },
      ],
    ])(
      '%s admit, refuse, and deny when they cannot be checked',
      async ([, options, right, wrong]) => {
        for (const [claims, allowed] of [
          [right, true],
          [wrong, false],
          [{}, false],
        ] as const) {
          provider.idClaims = { email_verified: true, email: 'x@other.example', ...claims };
          const { result } = await login(options);
          expect(result).toMatchObject({ outcome: 'authenticated', user: { allowed } });
        }
      },
    );
  },
);

test('rules about groups without the claim that lists them are a mistake in the configuration', async () => {
  const host = await createTestHost();
  for (const option of ['allowed_groups', 'admin_groups']) {
    const options = oidc.optionsSchema.parse({
      issuer: 'https://login.example.org',
      [option]: ['a'],
    });
    expect(oidc.findProblems?.(options, host)).toEqual([
      { option, message: 'needs groups_claim, the claim that lists the groups' },
    ]);
  }
});

test('an e-mail address is a user name only when it is verified (CVE-2026-33175)', async () => {
  for (const verified of [false, undefined, 'true']) {
    provider.idClaims = { ...alice, email_verified: verified };
    for (const plugin of [auth0, google]) {
      const { result, host } = await loginWithPlugin(
        plugin as AuthenticatorPlugin<unknown, ExternalAuthenticator>,
        { ...client, issuer: provider.issuer },
        provider,
      );
      expect(result).toMatchObject({ outcome: 'refused', reason: 'invalid_response' });
      expect(host.logged.join()).toContain('is not verified');
    }
  }
});

test('Google is asked for the hosted domain, and its signed claim decides (GHSA-55m3-44xf-hg4h)', async () => {
  const options = { ...client, issuer: provider.issuer, hosted_domain: 'example.org' };
  for (const [hd, allowed] of [
    ['example.org', true],
    ['evil.example', false],
    [undefined, false],
    [['example.org', 1], false],
  ] as const) {
    provider.idClaims = { ...alice, hd };
    const { result, location } = await loginWithPlugin(google, options, provider);
    expect(location.searchParams.get('hd')).toBe('example.org');
    expect(result).toMatchObject({ user: { allowed } });
  }
});

test('Microsoft accounts may be held to tenants', async () => {
  const options = { ...client, issuer: provider.issuer, allowed_tenants: ['tenant-1'] };
  for (const [tid, allowed] of [
    ['tenant-1', true],
    ['tenant-2', false],
    [undefined, false],
  ] as const) {
    provider.idClaims = { tid };
    const { result } = await loginWithPlugin(microsoft, options, provider);
    expect(result).toMatchObject({ user: { allowed } });
  }
});

describe('plain OAuth 2', () => {
  const endpoints = () => ({
    authorize_url: `${provider.issuer}/authorize`,
    token_url: `${provider.issuer}/token`,
    userdata_url: `${provider.issuer}/userinfo`,
  });
  beforeEach(() => {
    provider.script.token = (_req, res) =>
      sendJson(res, { access_token: 'a token', token_type: 'bearer' });
  });
  const login = (options: object = {}) =>
    loginWithPlugin(oauth2, { ...client, ...endpoints(), ...options }, provider);

  test('tells who the user is beside the name', async () => {
    provider.script.userinfo = (_req, res) =>
      sendJson(res, {
        id: 7,
        username: 'alice',
        given_name: 'Alice',
        family_name: 'Liddell',
        email: 'alice@example.org',
        picture: 'https://example.org/alice.png',
      });
    expect((await login()).result).toMatchObject({
      user: {
        info: {
          displayName: 'Alice Liddell',
          email: 'alice@example.org',
          isEmailVerified: false,
          pictureUrl: 'https://example.org/alice.png',
        },
      },
    });
  });

  test('takes name and id from the user endpoint', async () => {
    provider.script.userinfo = (_req, res) =>
      sendJson(res, { id: 7, username: 'alice', profile: { teams: ['a'] } });
    const { result, location } = await login({ groups_claim: 'profile.teams' });
    expect(result).toMatchObject({
      user: { name: 'alice', subject: '7', issuer: provider.issuer, groups: ['a'] },
    });
    expect(location.searchParams.get('code_challenge_method')).toBe('S256');
    expect(location.searchParams.has('nonce')).toBe(false);
  });

  test.for<readonly [string, unknown]>([
    ['no id', { username: 'alice' }],
    ['no name', { id: 7 }],
    ['a list', [{ id: 7, username: 'alice' }]],
    ['text', 'alice'],
  ])('refuses an answer with %s', async ([, answer]) => {
    provider.script.userinfo = (_req, res) => sendJson(res, answer);
    expect((await login()).result).toMatchObject({
      outcome: 'refused',
      reason: 'invalid_response',
    });
  });
});

describe('GitHub', () => {
  const login = (options: object = {}) =>
    loginWithPlugin(
      github,
      { ...client, github_url: provider.issuer, api_url: `${provider.issuer}`, ...options },
      provider,
    );
  let answers: Record<string, unknown>;

  beforeEach(() => {
    answers = {
      '/user': { id: 42, login: 'Alice', email: 'written@example.org', email_verified: true },
      '/user/memberships/orgs': [{ organization: { login: 'Example' } }],
      '/user/teams': [{ slug: 'core', organization: { login: 'Example' } }],
      '/user/emails': [
        { email: 'alice@example.org', primary: true, verified: true },
        { email: 'a@evil.example', primary: false, verified: true },
      ],
    };
    provider.fallback = (req, res) => {
      const { pathname } = new URL(req.url ?? '', provider.issuer);
      if (pathname === '/login/oauth/access_token') {
        sendJson(res, { access_token: 'gho_token', token_type: 'bearer', scope: 'read:user' });
      } else sendJson(res, answers[pathname] ?? {}, pathname in answers ? 200 : 404);
    };
  });

  test('people are known by their number, not by a name that others can take', async () => {
    const { result, location } = await login();
    expect(location.pathname).toBe('/login/oauth/authorize');
    expect(result).toMatchObject({ user: { name: 'Alice', subject: '42' } });
  });

  test('what the profile says is told, and its address as one that no one has verified', async () => {
    const avatar_url = 'https://avatars.example/42';
    answers['/user'] = { ...(answers['/user'] as object), name: 'Alice Liddell', avatar_url };
    expect((await login()).result).toMatchObject({
      user: {
        info: {
          displayName: 'Alice Liddell',
          email: 'written@example.org',
          isEmailVerified: false,
          pictureUrl: avatar_url,
        },
      },
    });
  });

  test.for<readonly [object, boolean]>([
    [{ allowed_organizations: ['example'] }, true],
    [{ allowed_organizations: ['other'] }, false],
    [{ allowed_teams: ['Example:core'] }, true],
    [{ allowed_teams: ['example:other'] }, false],
    [{ allowed_organizations: ['other'], allowed_teams: ['example:core'] }, true],
    [{ allowed_domains: ['example.org'] }, true],
    [{ allowed_domains: ['evil.example'] }, false],
  ])('%j: %j', async ([options, allowed]) => {
    const { result } = await login(options);
    expect(result).toMatchObject({ user: { allowed } });
  });

  test('an address written into the profile is not a verified one', async () => {
    answers['/user/emails'] = [{ email: 'alice@example.org', primary: true, verified: false }];
    const { result } = await login({ allowed_domains: ['example.org'] });
    expect(result).toMatchObject({ user: { allowed: false } });
  });

  test('organisations that cannot be read let no user in', async () => {
    delete answers['/user/memberships/orgs'];
    const { result } = await login({ allowed_organizations: ['example'] });
    expect(result).toMatchObject({ outcome: 'refused' });
  });
});

describe('the client of a provider', () => {
  test('registers itself where that is offered, once, and keeps the secret in its settings', async () => {
    let registrations = 0;
    await using registering = await startScriptedProvider({ registers: true });
    registering.fallback = async (_req, res) => {
      registrations += 1;
      sendJson(
        res,
        { client_id: 'the-hub', client_secret: 'made', client_secret_expires_at: 0 },
        201,
      );
    };
    const host = await createTestHost();
    const options = oidc.optionsSchema.parse({
      issuer: registering.issuer,
      allow_insecure_requests: true,
    });
    for (let round = 0; round < 2; round += 1) {
      const authenticator = await oidc.create(options, host);
      const begun = await authenticator.beginLogin(anyRequest());
      expect(new URL(begun.location).searchParams.get('client_id')).toBe('the-hub');
      await authenticator[Symbol.asyncDispose]?.();
    }
    expect(registrations).toBe(1);
    expect(host.logged.join()).not.toContain('made');
  });

  test('is hub-client-<uuid> where nothing is configured and the provider registers no clients', async () => {
    await using refusing = await startScriptedProvider({ registers: true });
    refusing.fallback = (_req, res) => sendJson(res, { error: 'access_denied' }, 403);
    for (const { issuer } of [provider, refusing]) {
      const authenticator = await oidc.create(
        oidc.optionsSchema.parse({ issuer, allow_insecure_requests: true }),
        await createTestHost(),
      );
      const begun = await authenticator.beginLogin(anyRequest());
      const clientId = new URL(begun.location).searchParams.get('client_id');
      expect(clientId).toMatch(/^hub-client-[0-9a-f-]{36}$/);
      await authenticator[Symbol.asyncDispose]?.();
    }
  });
});
