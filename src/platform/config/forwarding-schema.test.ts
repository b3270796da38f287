import { expect, test } from 'vitest';
import { forwardingKeys } from './forwarding-schema.ts';

const accepts = (headers: unknown) => forwardingKeys.headers.safeParse(headers).success;

test.each([
  ...['X-Hub-User', 'x-hub-hop', 'X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'X-Remote-User'],
  ...['Cf-Access-Authenticated-User-Email', 'Remote_User', 'X-HTTP-Method-Override', 'Cookie'],
  ...['Host', 'Connection', 'Transfer-Encoding', 'Content-Length', 'TE', 'Upgrade', 'Trailer'],
  ...['Keep-Alive', 'Proxy-Authorization', 'Expect', 'HTTP2-Settings', 'Sec-WebSocket-Key'],
  ...['X-Request-Id', 'X-A: b', 'X-A\r\nX-B', 'X A', '', ':path', 'X-ſ'],
])('no route sets or removes %j of requests', (name) => {
  expect(accepts({ request: { set: { [name]: 'x' } } })).toBe(false);
  expect(accepts({ request: { remove: [name] } })).toBe(false);
});

test.each([
  ...['Set-Cookie', 'Location', 'Strict-Transport-Security', 'Clear-Site-Data', 'Alt-Svc'],
  ...['Connection', 'Transfer-Encoding', 'content-length', 'Content-Encoding', 'Upgrade'],
  ...['X-Accel-Redirect', 'Service-Worker-Allowed', 'Sec-WebSocket-Accept', 'X-Hub-User'],
  ...['Proxy-Authenticate', 'X-A\n'],
])('no route sets or removes %j of answers', (name) => {
  expect(accepts({ response: { set: { [name]: 'x' } } })).toBe(false);
  expect(accepts({ response: { remove: [name] } })).toBe(false);
});

test('other headers are the operator’s, with values of one line', () => {
  expect(accepts({ request: { set: { Authorization: 'Basic YTpi', 'X-Api-Key': 'k' } } })).toBe(
    true,
  );
  expect(accepts({ response: { set: { 'X-Frame-Options': 'DENY' }, remove: ['Server'] } })).toBe(
    true,
  );
  for (const value of ['a\r\nX-Hub-User: root', 'a\n', '\0', 'ä', ' a', '']) {
    expect(accepts({ request: { set: { 'X-A': value } } })).toBe(false);
  }
});

test('two names of one header are refused, wherever they stand', () => {
  for (const direction of ['request', 'response']) {
    expect(accepts({ [direction]: { set: { 'X-Key': 'a', 'x-key': 'b' } } })).toBe(false);
    expect(accepts({ [direction]: { remove: ['X-Key', 'X-KEY'] } })).toBe(false);
    expect(accepts({ [direction]: { set: { 'X-Key': 'a', X_Key: 'b' } } })).toBe(false);
  }
});
