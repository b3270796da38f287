import { expect, test } from 'vitest';
import { OAuthError } from './oauth-error.ts';

test('keeps descriptions within the characters that RFC 6749 §4.1.2.1 allows', () => {
  const error = new OAuthError('invalid_scope', 'The scope "naïve\\\r\nSet-Cookie: x" is unknown.');
  expect(error.message).toBe("The scope 'na?ve/??Set-Cookie: x' is unknown.");
});

test('bounds the length of descriptions', () => {
  expect(new OAuthError('invalid_scope', 'x'.repeat(10_000)).message).toHaveLength(300);
});

test('keeps its cause', () => {
  const cause = new Error('below');
  expect(new OAuthError('invalid_request', 'text', { cause }).cause).toBe(cause);
});
