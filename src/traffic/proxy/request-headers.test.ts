import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import type { Forwarding } from '../../platform/protocol/identity-headers.ts';
import { toHeaderObject, upstreamRequestHeaders } from './request-headers.ts';
import { createRoute, type RouteAccess } from './route.ts';

const client = { address: '203.0.113.7', protocol: 'https', host: 'hub.test:8443' } as const;
const forwarded = {
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'hub.test:8443',
  'x-forwarded-port': '8443',
  'x-request-id': 'id-1',
};

const routeWith = (access: RouteAccess, sessionIdAliases?: string[], forwarding?: Forwarding) =>
  createRoute(
    {
      forwarding,
      prefix: '/services/a/',
      target: 'http://127.0.0.1:9',
      access,
      owner: { kind: 'service', name: 'a' },
      clientId: 'service-a',
      sessionIdAliases,
    },
    0,
  );

function sent(
  rawHeaders: string[],
  options: {
    access?: RouteAccess;
    sessionIdAliases?: string[];
    forwarding?: Forwarding;
    headersToAdd?: string[];
    stripAuthorization?: boolean;
  } = {},
) {
  const {
    access = 'gateway',
    sessionIdAliases,
    forwarding,
    headersToAdd = [],
    stripAuthorization = false,
  } = options;
  return toHeaderObject(
    upstreamRequestHeaders({
      rawHeaders,
      route: routeWith(access, sessionIdAliases, forwarding),
      client,
      requestId: 'id-1',
      headersToAdd,
      stripAuthorization,
    }),
  );
}

describe('upstreamRequestHeaders', () => {
  test('asks an app by its own name where that is wanted, with an Origin that agrees', () => {
    const forwarding = { host: 'upstream', identity_headers: {} } as const;
    const origins = ['https://hub.test:8443', 'https://other.test', 'null'];
    const pairs = origins.map((origin) =>
      sent(['Host', 'hub.test:8443', 'Origin', origin], { forwarding }),
    );
    expect(pairs.map(({ host, origin }) => [host, origin])).toEqual([
      ['127.0.0.1:9', 'http://127.0.0.1:9'],
      ['127.0.0.1:9', 'https://other.test'],
      ['127.0.0.1:9', 'null'],
    ]);
    expect(pairs[0]?.['x-forwarded-host']).toBe('hub.test:8443');
  });

  test('takes from a visitor every header by which the app learns who asks', () => {
    const forwarding = {
      host: 'public',
      identity_headers: { user: 'X-Pupil', email: 'Post' },
    } as const;
    const rawHeaders = ['Host', 'hub.test', 'x-PUPIL', 'bob', 'post', 'b@x', 'X-Pupils', 'kept'];
    expect(sent(rawHeaders, { forwarding, headersToAdd: ['X-Pupil', 'alice'] })).toEqual({
      host: 'hub.test',
      'x-pupil': 'alice',
      'x-pupils': 'kept',
      ...forwarded,
    });
  });

  test('passes ordinary headers on, repeated ones included, in their spelling', () => {
    const rawHeaders = ['Host', 'hub.test', 'ACCEPT', '*/*', 'X-Trace', '1', 'x-trace', '2'];
    expect(sent(rawHeaders)).toEqual({
      host: 'hub.test',
      accept: '*/*',
      'x-trace': ['1', '2'],
      ...forwarded,
    });
    const pairs = upstreamRequestHeaders({
      rawHeaders,
      route: routeWith('public'),
      client,
      requestId: 'id-1',
      headersToAdd: [],
      stripAuthorization: false,
    });
    expect(pairs.slice(2, 4)).toEqual(['ACCEPT', '*/*']);
  });

  test.for([
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'Expect',
    'HTTP2-Settings',
    'Content-Length',
    'Proxy',
    'Proxy-Authorization',
    'Proxy-Connection',
    'Forwarded',
    'X-Forwarded',
    'X-Forwarded-User',
    'X-Forwarded-Email',
    'X-Forwarded-Groups',
    'X-Forwarded-Preferred-Username',
    'X-Forwarded-Access-Token',
    'X-Forwarded-Uri',
    'X-Forwarded-Method',
    'X-Forwarded-Prefix',
    'X-Forwarded-Path',
    'X-Original-URL',
    'X-Original-Uri',
    'X-Rewrite-URL',
    'X-Real-IP',
    'X-Client-IP',
    'True-Client-IP',
    'X-Scheme',
    'X-Hub-User',
    'X-Hub-Groups',
    'X-Hub-Anything',
    'X-Auth-Request-User',
    'X-Auth-User',
    'X-Auth-Email',
    'X-Auth-Groups',
    'X-Authenticated-User',
    'X-Authenticated-Userid',
    'X-Remote-User',
    'X-WEBAUTH-USER',
    'Remote-User',
    'Remote-Groups',
    'Remote-Email',
    'Remote-Name',
    'X-SSL-Client-Cert',
    'X_Hub_User',
    'x-hub_user',
    'X.Hub.User',
    'X!Hub!User',
    'Remote_User',
    'Any_Thing',
    '__proto__',
  ])('drops %s in any case', (name) => {
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
      expect(Object.keys(sent([spelling, 'mallory']))).toEqual(Object.keys(forwarded));
    }
  });

  test.for(['constructor', 'x-auth-token', 'x-hubbub', 'remote-desktop', 'x-forward'])(
    'passes %s on, which only resembles a reserved name',
    (name) => {
      expect(sent([name, 'v'])).toHaveProperty(name, 'v');
    },
  );

  const identities = [
    'X-User',
    'X-Email',
    'X-Authentik-Username',
    'X-Authentik-Groups',
    'X-Pomerium-Jwt-Assertion',
    'X-Pomerium-Claim-Email',
    'X-Goog-Authenticated-User-Email',
    'X-Goog-Iap-Jwt-Assertion',
    'Cf-Access-Authenticated-User-Email',
    'Cf-Access-Jwt-Assertion',
    'Tailscale-User-Login',
    'X-MS-Client-Principal-Name',
    'X-Consumer-Username',
    'X-Vouch-User',
    'X-Grafana-User',
    'X-Amzn-Oidc-Identity',
    'Iv-User',
    'Iv-Creds',
    'X-Userinfo',
    'Shib-Session-Id',
    'Eppn',
    'X-Credential-Identifier',
    'X-Spiffe-Id',
    'X-Ms-Token-Aad-Id-Token',
    'Tailscale-App-Capabilities',
  ];

  test.for(identities)('%s of a visitor never reaches an app that the gateway guards', (name) => {
    expect(sent([name, 'root'])).not.toHaveProperty(name.toLowerCase());
    expect(sent([name, 'root'], { access: 'public' })).not.toHaveProperty(name.toLowerCase());
  });

  test('an app that checks visitors itself keeps credentials of its own', () => {
    expect(sent(['X-User-Email', 'a@b.test'], { access: 'service' })).toHaveProperty(
      'x-user-email',
    );
    expect(sent(['X-Hub-User', 'root'], { access: 'service' })).not.toHaveProperty('x-hub-user');
  });

  test.for([
    'Impersonate-User',
    'X-HTTP-Method-Override',
    'X-Method-Override',
    'X-HTTP-Method',
    'Cf-Access-Jwt-Assertion',
    'X-Pomerium-Jwt-Assertion',
    'X-authentik-jwt',
    'Client-Cert',
    'Client-Cert-Chain',
    'X-ARR-ClientCert',
    'X-Amzn-Mtls-Clientcert-Leaf',
    'X-Tls-Client-Dn',
    'Cf-Connecting-Ip',
    'Cf-Connecting-Ipv6',
    'Fastly-Client-Ip',
    'Fly-Client-Ip',
    'X-Azure-ClientIP',
    'X-ProxyUser-Ip',
    'X-Originating-Ip',
    'X-Appengine-User-Ip',
    'X-Envoy-External-Address',
    'X-Envoy-Original-Path',
  ])('%s reaches no upstream', (name) => {
    for (const access of ['gateway', 'service', 'server', 'public'] as const)
      expect(sent([name, 'x'], { access })).not.toHaveProperty(name.toLowerCase());
  });

  test('what only sounds like an identity is kept', () => {
    for (const name of [
      'X-User-Agent',
      'X-Grpc-User-Agent',
      'X-Csrf-Token',
      'X-Upload-Id',
      'X-Ship-Id',
      'X-Zip',
      'X-Api-Token',
    ])
      expect(sent([name, 'x'])).toHaveProperty(name.toLowerCase());
  });

  test('a __proto__ header changes no object', () => {
    const headers = sent(['__proto__', 'polluted', 'accept', '*/*']);
    expect(Object.getPrototypeOf(headers)).toBeNull();
    expect(headers).toMatchObject({ accept: '*/*' });
  });

  test('removes what Connection lists, but nothing that the gateway adds', () => {
    const rawHeaders = [
      'Host',
      'hub.test',
      'Connection',
      'close, X-Secret , X-Hub-User',
      'connection',
      'X-Forwarded-For,host',
      'X-Secret',
      '1',
      'X-Other',
      '2',
    ];
    expect(sent(rawHeaders, { headersToAdd: ['X-Hub-User', 'alice'] })).toEqual({
      host: 'hub.test',
      'x-other': '2',
      ...forwarded,
      'x-hub-user': 'alice',
    });
  });

  test('refuses a second Host header', () => {
    expect(() => sent(['Host', 'a', 'host', 'b'])).toThrow('two Host headers');
  });

  test('removes a hub token from Authorization and Referer when told to', () => {
    const rawHeaders = [
      'Authorization',
      'token secret',
      'Referer',
      'https://hub.test/services/a/?x=1&token=secret',
    ];
    expect(sent(rawHeaders, { stripAuthorization: true })).toEqual({
      referer: 'https://hub.test/services/a/?x=1',
      ...forwarded,
    });
    expect(sent(rawHeaders)).toMatchObject({
      authorization: 'token secret',
      referer: 'https://hub.test/services/a/?x=1&token=secret',
    });
  });

  test('derives the port from the protocol when the host names none', () => {
    const portFor = (host: string, protocol: 'http' | 'https') =>
      toHeaderObject(
        upstreamRequestHeaders({
          rawHeaders: [],
          route: routeWith('public'),
          client: { address: '::1', protocol, host },
          requestId: 'id-1',
          headersToAdd: [],
          stripAuthorization: false,
        }),
      )['x-forwarded-port'];
    expect(portFor('hub.test', 'https')).toBe('443');
    expect(portFor('hub.test', 'http')).toBe('80');
    expect(portFor('[::1]', 'http')).toBe('80');
    expect(portFor('[::1]:81', 'http')).toBe('81');
    expect(portFor('', 'http')).toBeUndefined();
  });
});

describe('cookies', () => {
  const cookie = (header: string, access: RouteAccess) =>
    sent(['Cookie', header], { access })['cookie'];
  const all =
    'a=1; hub-hub-login=L; hub-session-id=S; service-a=T; service-a-oauth-state-xyz=O; ' +
    'service-ab=X; service-b=X; service-b-oauth-state=X; hub-user-eve=X; hub-xsrf=X; ' +
    'HUB-HUB-LOGIN=X; __Host-hub-hub-login=X; b="2"';

  test('a service that checks visitors itself gets its own and the session id', () => {
    const expected = 'a=1; hub-session-id=S; service-a=T; service-a-oauth-state-xyz=O; b="2"';
    expect(cookie('a=1; hub-session-id=S', 'service')).toBe('a=1; hub-session-id=S');
    expect(cookie(all, 'service')).toBe(expected);
    expect(cookie(all, 'server')).toBe(expected);
  });

  test('behind the gateway or in public an upstream gets none of them', () => {
    expect(cookie(all, 'gateway')).toBe('a=1; b="2"');
    expect(cookie(all, 'public')).toBe('a=1; b="2"');
    expect(cookie('hub-session-id=S', 'gateway')).toBeUndefined();
  });

  test('whatever a visitor sends, none of the hub passes the gateway, and the others stay as they are', () => {
    const ofHub = fc.constantFrom(
      'hub-x',
      'HUB-x',
      'service-b',
      '__Host-hub-x',
      '__Secure-service-a',
    );
    const foreign = fc.constantFrom('a', 'x-hub-', 'my-service-b', 'hubs');
    const value = fc.string({
      unit: fc.constantFrom('"', '=', ',', ' ', '\t', 'b', 'hub-', '\xc3\xa0'),
    });
    const pair = fc.tuple(fc.oneof(ofHub, foreign), value, fc.constantFrom('', ' ', '\t', '\xa0'));
    fc.assert(
      fc.property(fc.array(pair, { minLength: 1, maxLength: 6 }), (pairs) => {
        const written = (list: typeof pairs) => list.map(([name, text]) => `${name}=${text}`);
        const header = pairs
          .map(([name, text, blank]) => `${blank}${name}${blank}=${text}`)
          .join(';');
        expect(cookie(header, 'gateway') ?? '').not.toMatch(
          /(?:^|;)\s*(?:__\w+-)?(?:hub|service)-/i,
        );
        const kept = pairs.filter(([name]) => /^(?:a|x-hub-|my-service-b|hubs)$/.test(name));
        const plain = String(cookie(written(pairs).join('; '), 'gateway') ?? '');
        const trimmed = (text: string) => text.replace(/[ \t]+$/, '');
        expect(plain.split(/; /).map(trimmed).join('; ')).toBe(
          written(kept).map(trimmed).join('; '),
        );
      }),
      runs(300),
    );
  });

  test('an alias of the session id goes where the session id goes, and is foreign elsewhere', () => {
    const aliases = { sessionIdAliases: ['jupyterhub-session-id'] };
    const both = 'hub-session-id=S; jupyterhub-session-id=S';
    for (const access of ['service', 'server'] as const) {
      expect(sent(['Cookie', both], { access, ...aliases })['cookie']).toBe(both);
    }
    for (const access of ['gateway', 'public'] as const) {
      const odd = `${both}; JupyterHub-Session-Id=S; a=1`;
      expect(sent(['Cookie', odd], { access, ...aliases })['cookie']).toBe('a=1');
    }
    expect(cookie(both, 'gateway')).toBe('jupyterhub-session-id=S');
  });

  test('foreign cookies stay as they are, byte for byte', () => {
    const odd = '$Version="1"; a=1;b=2 ;; =x; noequals; app-oauth-state=1; q="; "';
    expect(cookie(odd, 'gateway')).toBe(odd);
  });

  test('a repeated or oddly spaced name is dropped every time', () => {
    expect(cookie('hub-hub-login=1;hub-hub-login =2;  hub-hub-login=3;x=1', 'server')).toBe('x=1');
    expect(cookie('hub-hub-login', 'server')).toBeUndefined();
  });

  test('every Cookie header is filtered', () => {
    const headers = sent(['Cookie', 'hub-hub-login=1', 'cookie', 'a=1; hub-hub-login=1']);
    expect(headers['cookie']).toBe('a=1');
  });
});
