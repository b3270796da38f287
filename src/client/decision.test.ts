import { expect, test } from 'vitest';
import { isForged, isForPage, isFromBrowser, isPreflight, mayFollowLogin } from './decision.ts';

test.for([
  ['a browser going to a page', { 'sec-fetch-mode': 'navigate', accept: 'text/html' }, true],
  ['an older browser', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }, true],
  ['a command line that takes anything', { accept: '*/*' }, true],
  ['a request that says nothing about itself', {}, true],
  ['a script in a page', { 'sec-fetch-mode': 'cors', accept: 'text/html' }, false],
  ['an image', { 'sec-fetch-mode': 'no-cors', accept: '*/*' }, false],
  ['XMLHttpRequest', { 'x-requested-with': 'XMLHttpRequest', accept: '*/*' }, false],
  ['a program that takes JSON', { accept: 'application/json' }, false],
  ['pip', { accept: 'application/vnd.pypi.simple.v1+json, text/html; q=0.01' }, false],
  ['podman', { 'user-agent': 'containers/5.24.1 (github.com/containers/image)' }, false],
  ['a program with a token', { authorization: 'token bad', accept: '*/*' }, false],
  ['a WebSocket', { upgrade: 'WebSocket', accept: 'text/html' }, false],
] as const)('%s may be sent to the login: %o %s', ([, headers, expected]) => {
  expect(mayFollowLogin({ method: 'GET', headers })).toBe(expected);
});

test('what changes something is never sent to the login', () => {
  expect(mayFollowLogin({ method: 'POST', headers: { 'sec-fetch-mode': 'navigate' } })).toBe(false);
});

test.for([
  ['a page of a browser', { 'sec-fetch-mode': 'navigate', accept: 'text/html' }, true, true],
  ['a page of an older browser', { accept: 'text/html,*/*;q=0.8' }, true, true],
  ['a frame', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }, true, true],
  ['an image', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }, true, false],
  ['a script in a page', { 'sec-fetch-mode': 'cors', accept: 'text/html' }, true, false],
  ['a WebSocket', { origin: 'https://hub.example.org', upgrade: 'websocket' }, true, false],
  ['fetch of Node.js', { 'sec-fetch-mode': 'cors', accept: '*/*' }, false, false],
  ['curl', { accept: '*/*' }, false, false],
  ['pip', { accept: 'application/vnd.pypi.simple.v1+json, text/html; q=0.01' }, false, false],
  ['a script in a page of plain http', { 'user-agent': 'Mozilla/5.0', accept: '*/*' }, true, false],
] as const)(
  '%s: %o comes from a browser: %s, may be shown as a page: %s',
  ([, headers, fromBrowser, forPage]) => {
    expect([isFromBrowser({ headers }), isForPage({ headers })]).toEqual([fromBrowser, forPage]);
  },
);

test('a preflight is an OPTIONS request that asks for a method', () => {
  const headers = { 'access-control-request-method': 'PUT' };
  expect(isPreflight({ method: 'OPTIONS', headers })).toBe(true);
  expect(isPreflight({ method: 'OPTIONS', headers: {} })).toBe(false);
  expect(isPreflight({ method: 'GET', headers })).toBe(false);
});

const host = 'hub.example.org';
const origin = 'https://hub.example.org';

test.for([
  ['POST of a form on the own origin', 'POST', { 'sec-fetch-site': 'same-origin' }, false],
  ['POST typed by the user', 'POST', { 'sec-fetch-site': 'none' }, false],
  ['POST from another site', 'POST', { 'sec-fetch-site': 'cross-site', origin }, true],
  ['POST from a sibling domain', 'POST', { 'sec-fetch-site': 'same-site' }, true],
  ['POST with the own Origin only', 'POST', { origin }, false],
  ['POST with another Origin only', 'DELETE', { origin: 'https://evil.example' }, true],
  ['POST with an opaque Origin', 'POST', { origin: 'null' }, true],
  ['POST of a program', 'POST', {}, false],
  ['GET from anywhere', 'GET', { 'sec-fetch-site': 'cross-site' }, false],
  ['GET of the own origin, which it names', 'GET', { origin }, false],
  ['GET that may be a handshake', 'GET', { origin: 'https://ada.example.org' }, true],
  [
    'GET of a script of another origin',
    'GET',
    { origin: 'https://ada.example.org', 'sec-fetch-mode': 'cors' },
    false,
  ],
  ['HEAD of another origin', 'HEAD', { origin: 'https://ada.example.org' }, false],
  ...['sec-websocket-key', 'sec-websocket-version', 'sec-fetch-mode'].flatMap(
    (name) =>
      [
        [`what a proxy asks about a WebSocket`, 'GET', { [name]: 'websocket' }, true],
        [`the same of the own origin`, 'GET', { [name]: 'websocket', origin }, false],
      ] as const,
  ),
  ['WebSocket of the own origin', 'GET', { upgrade: 'websocket', origin }, false],
  [
    'WebSocket of another origin',
    'GET',
    { upgrade: 'websocket', origin: 'https://evil.example' },
    true,
  ],
  ['WebSocket of an opaque origin', 'GET', { upgrade: 'websocket', origin: 'null' }, true],
  ['WebSocket without an origin', 'GET', { upgrade: 'websocket' }, true],
  [
    'WebSocket of the same host without TLS',
    'GET',
    { upgrade: 'websocket', origin: 'http://hub.example.org' },
    true,
  ],
  ['WebSocket of another port', 'GET', { upgrade: 'websocket', origin: `${origin}:8443` }, true],
  [
    'WebSocket of a host that begins alike',
    'GET',
    { upgrade: 'websocket', origin: `${origin}.evil.example` },
    true,
  ],
] as const)('%s (%s %o) is forged: %s', ([, method, headers, expected]) => {
  expect(isForged({ method, headers: { host, ...headers } }, origin)).toBe(expected);
});

test('without a known public origin, the Host header is the own one', () => {
  const headers = { host: '127.0.0.1:8000', upgrade: 'websocket', origin: 'http://127.0.0.1:8000' };
  expect(isForged({ method: 'GET', headers }, undefined)).toBe(false);
  expect(
    isForged({ method: 'GET', headers: { ...headers, host: '127.0.0.1:9000' } }, undefined),
  ).toBe(true);
});
