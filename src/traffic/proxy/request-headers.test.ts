import { describe, expect, test } from 'vitest';
import { client, routeWith, sent } from '../../../test/support/sent-headers.ts';
import { toHeaderObject, upstreamRequestHeaders } from './request-headers.ts';

const forwarded = {
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'hub.test:8443',
  'x-forwarded-port': '8443',
  'x-request-id': 'id-1',
};

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
