import { expect, test } from 'vitest';
import { isForged, mayFollowLogin } from './browser-request.ts';

test.for([
  ['a browser going to a page', { 'sec-fetch-mode': 'navigate', accept: 'text/html' }, true],
  ['an older browser', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }, true],
  ['a command line that takes anything', { accept: '*/*' }, true],
  ['a request that says nothing about itself', {}, true],
  ['a script in a page', { 'sec-fetch-mode': 'cors', accept: 'text/html' }, false],
  ['an image', { 'sec-fetch-mode': 'no-cors', accept: '*/*' }, false],
  ['XMLHttpRequest', { 'x-requested-with': 'XMLHttpRequest', accept: '*/*' }, false],
  ['a program that takes JSON', { accept: 'application/json' }, false],
  ['a program with a token', { authorization: 'token bad', accept: '*/*' }, false],
  ['a WebSocket', { upgrade: 'WebSocket', accept: 'text/html' }, false],
] as const)('%s may be sent to the login: %o %s', ([, headers, expected]) => {
  expect(mayFollowLogin({ method: 'GET', headers })).toBe(expected);
});

test('what changes something is never sent to the login', () => {
  expect(mayFollowLogin({ method: 'POST', headers: { 'sec-fetch-mode': 'navigate' } })).toBe(false);
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
