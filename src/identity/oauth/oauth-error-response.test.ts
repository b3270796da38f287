import { expect, test } from 'vitest';
import { OAuthError } from './oauth-error.ts';
import {
  authorizationErrorUrl,
  authorizationResponseUrl,
  toOAuthErrorResponse,
} from './oauth-error-response.ts';

const target = {
  redirectUri: 'https://app.example/cb',
  state: 'x y&z',
  issuer: 'https://hub.example',
};

test('answers most errors with 400', () => {
  expect(toOAuthErrorResponse(new OAuthError('invalid_grant', 'The code is old.'))).toEqual({
    status: 400,
    headers: {},
    body: { error: 'invalid_grant', error_description: 'The code is old.' },
  });
});

test.each([
  ['invalid_client', 401, /^Basic /],
  ['invalid_token', 401, /^Bearer .*error="invalid_token"/],
  ['insufficient_scope', 403, /^Bearer .*error="insufficient_scope"/],
] as const)('answers %s with %i and a challenge', (code, status, challenge) => {
  const response = toOAuthErrorResponse(new OAuthError(code, 'text'));
  expect(response.status).toBe(status);
  expect(response.headers['WWW-Authenticate']).toMatch(challenge);
});

test('answers too many attempts with 429 and the time to wait', () => {
  const error = new OAuthError('invalid_client', 'Too many.', { retryAfterSeconds: 12 });
  expect(toOAuthErrorResponse(error)).toMatchObject({
    status: 429,
    headers: { 'Retry-After': '12' },
  });
});

test('sends code, state and issuer with the browser', () => {
  const url = new URL(authorizationResponseUrl(target, 'the-code'));
  expect(url.origin + url.pathname).toBe('https://app.example/cb');
  expect(Object.fromEntries(url.searchParams)).toEqual({
    code: 'the-code',
    state: 'x y&z',
    iss: 'https://hub.example',
  });
});

test('leaves the state out when the request had none', () => {
  const url = authorizationErrorUrl(
    { ...target, state: undefined },
    new OAuthError('access_denied', 'No.'),
  );
  expect(Object.fromEntries(new URL(url).searchParams)).toEqual({
    error: 'access_denied',
    error_description: 'No.',
    iss: 'https://hub.example',
  });
});

test('writes an error in words that need no decoding of forms', () => {
  const error = new OAuthError('access_denied', 'The user chose 1+1.');
  expect(authorizationErrorUrl(target, error)).toContain(
    'error_description=The%20user%20chose%201%2B1.&',
  );
});

test('keeps the query that belongs to the redirect URI', () => {
  const url = authorizationResponseUrl(
    { ...target, redirectUri: 'https://app.example/cb?a=%20' },
    'c',
  );
  expect(url).toMatch(/^https:\/\/app\.example\/cb\?a=%20&code=c&/);
});
