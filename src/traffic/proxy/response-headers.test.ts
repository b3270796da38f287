import { describe, expect, test } from 'vitest';
import { originHeaders } from '../../platform/protocol/forwarded-headers.ts';
import { clientResponseHeaders, confinedSetCookie, publicLocation } from './response-headers.ts';
import { createRoute, type RouteAccess } from './route.ts';

const routeWith = (access: RouteAccess, target = 'http://127.0.0.1:9000') =>
  createRoute(
    {
      prefix: '/services/a/',
      target,
      access,
      owner: { kind: 'service', name: 'a' },
      clientId: 'service-a',
    },
    0,
  );
const route = routeWith('service');

describe('clientResponseHeaders', () => {
  test('passes ordinary headers on, every repetition of its own', () => {
    const headers = { 'content-type': 'text/html', link: ['<a>', '<b>'], etag: '"1"' };
    expect(clientResponseHeaders(headers, route)).toEqual([
      'content-type',
      'text/html',
      'link',
      '<a>',
      'link',
      '<b>',
      'etag',
      '"1"',
    ]);
  });

  test('drops hop-by-hop headers, what Connection lists, and what speaks for the whole origin', () => {
    const headers = {
      connection: 'close, X-Private',
      'x-private': '1',
      'keep-alive': 'timeout=5',
      'transfer-encoding': 'chunked',
      trailer: 'x',
      upgrade: 'h2c',
      'proxy-authenticate': 'Basic',
      'clear-site-data': '"*"',
      'alt-svc': 'h3=":443"',
      'strict-transport-security': 'max-age=1; includeSubDomains',
      'x-kept': '1',
    };
    expect(clientResponseHeaders(headers, route)).toEqual(['x-kept', '1']);
  });

  test.for([...originHeaders.keys()])(
    'drops %s, with which an upstream would speak for the whole origin',
    (name) => {
      expect(clientResponseHeaders({ [name]: 'x', 'x-kept': '1' }, route)).toEqual(['x-kept', '1']);
    },
  );

  test.for([
    ['same-origin', undefined, undefined],
    ['Same-Origin; report-to="x"', undefined, undefined],
    ['same-origin', 'unsafe-none', undefined],
    ['same-origin', 'require-corp; report-to="x"', 'same-origin'],
    ['same-origin', 'credentialless', 'same-origin'],
    ['same-origin-allow-popups; report-to="x"', undefined, 'same-origin-allow-popups'],
    ['unsafe-none', undefined, 'unsafe-none'],
    ['', undefined, undefined],
  ] as const)(
    'opener policy %j with embedder policy %j becomes %j',
    ([policy, embedder, expected]) => {
      const headers = {
        'cross-origin-opener-policy': policy,
        ...(embedder === undefined ? {} : { 'cross-origin-embedder-policy': embedder }),
      };
      const pairs = clientResponseHeaders(headers, route);
      const at = pairs.indexOf('cross-origin-opener-policy');
      expect(at === -1 ? undefined : pairs[at + 1]).toBe(expected);
    },
  );

  test('a service worker gets no further than the prefix', () => {
    const allowed = (value: string) =>
      clientResponseHeaders({ 'service-worker-allowed': value }, route)[1];
    expect(allowed('/')).toBe('/services/a/');
    expect(allowed('/services/a/x/')).toBe('/services/a/x/');
  });
});

describe('confinedSetCookie', () => {
  test.for([
    'hub-hub-login=evil; Path=/hub/',
    'HUB-HUB-LOGIN=evil',
    'hub-session-id=evil; Path=/',
    ' hub-session-id =evil',
    'service-b=evil; Path=/services/b/',
    'hub-user-eve=evil',
    'hub-user-eve-oauth-state=evil',
    '__Host-hub-hub-login=evil; Secure; Path=/',
    '=hub-hub-login=evil',
    'hub-hub-login',
    '',
  ])('drops %j', (setCookie) => {
    expect(confinedSetCookie(setCookie, route)).toBeUndefined();
  });

  test('a route sets its own token cookie, unless the gateway does so in its place', () => {
    const setCookie = 'service-a=T; HttpOnly; Path=/services/a/';
    expect(confinedSetCookie(setCookie, route)).toBe(setCookie);
    expect(confinedSetCookie(setCookie, routeWith('gateway'))).toBeUndefined();
    expect(confinedSetCookie(setCookie, routeWith('public'))).toBeUndefined();
  });

  test.for([
    ['x=1', 'x=1'],
    ['x=1; Domain=.hub.test; HttpOnly', 'x=1; HttpOnly'],
    ['x=1; domain = hub.test', 'x=1'],
    ['x=1; Path=/; Secure', 'x=1; Path=/services/a/; Secure'],
    ['x=1; path=/hub/', 'x=1; Path=/services/a/'],
    ['x=1; Path=', 'x=1; Path=/services/a/'],
    ['x=1; Path=/services/a/b', 'x=1; Path=/services/a/b'],
    ['x=1; Path=/services/a', 'x=1; Path=/services/a'],
    ['x=1; Path=/services/ab', 'x=1; Path=/services/a/'],
    ['__Host-x=1; Path=/; Secure', '__Host-x=1; Path=/; Secure'],
    [
      'x="a=b"; Expires=Wed, 21 Oct 2026 07:28:00 GMT',
      'x="a=b"; Expires=Wed, 21 Oct 2026 07:28:00 GMT',
    ],
  ] as const)('%s becomes %s', ([setCookie, expected]) => {
    expect(confinedSetCookie(setCookie, route)).toBe(expected);
  });
});

describe('publicLocation', () => {
  test.for([
    ['/services/a/x?y#z', '/services/a/x?y#z'],
    ['x/y', 'x/y'],
    ['?page=2', '?page=2'],
    ['https://example.org/', 'https://example.org/'],
    ['http://127.0.0.1:9001/', 'http://127.0.0.1:9001/'],
    ['http://127.0.0.1:9000/services/a/x?y#z', '/services/a/x?y#z'],
    ['https://127.0.0.1:9000/services/a/', '/services/a/'],
    ['//127.0.0.1:9000/x', '/x'],
    ['http://127.0.0.1:9000', '/'],
    ['http://127.0.0.1:9000//evil.example/x', '/evil.example/x'],
    ['http://127.0.0.1:9000/\\evil.example/x', '/evil.example/x'],
  ] as const)('%s becomes %s', ([location, expected]) => {
    expect(publicLocation(location, route)).toBe(expected);
  });

  test.for([
    ['http://hub.example.org/services/a/', '/services/a/'],
    ['http://hub.example.org:9000/x?y#z', '/x?y#z'],
    ['https://HUB.example.org:8443/x', '/x'],
    ['//hub.example.org/x', '/x'],
    ['http://hub.example.org:3000/x', 'http://hub.example.org:3000/x'],
    ['http://wiki.hub.example.org/x', 'http://wiki.hub.example.org/x'],
    ['http://localhost/x', '/x'],
    ['http://user@hub.example.org//evil.example', '/evil.example'],
    ['http://hub.example.org.evil.example/', 'http://hub.example.org.evil.example/'],
  ] as const)('of the hub itself: %s becomes %s', ([location, expected]) => {
    const hosts = ['hub.example.org:8443', 'localhost:8000', undefined, '', 'no host'];
    expect(publicLocation(location, route, hosts)).toBe(expected);
  });

  test('knows the address of an upstream with a default port', () => {
    expect(
      publicLocation('https://app.internal/x', routeWith('service', 'https://app.internal')),
    ).toBe('/x');
  });
});
