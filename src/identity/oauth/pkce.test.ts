import { expect, test } from 'vitest';
import { isCodeVerifier, isS256CodeChallenge, verifyCodeVerifier } from './pkce.ts';

// The example of RFC 7636, appendix B.
const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

test('accepts the example of RFC 7636 appendix B', () => {
  expect(verifyCodeVerifier(verifier, challenge)).toBe(true);
});

test.each([
  ['another verifier', `${verifier.slice(0, -1)}x`],
  ['the challenge itself, as with the method plain', challenge],
  ['nothing', ''],
])('refuses %s', (_, text) => {
  expect(verifyCodeVerifier(text, challenge)).toBe(false);
});

test.each([
  ['a'.repeat(42), false],
  ['a'.repeat(43), true],
  ['a'.repeat(128), true],
  ['a'.repeat(129), false],
  [`${'a'.repeat(42)}.~_-`, true],
  [`${'a'.repeat(42)}+`, false],
  [`${'a'.repeat(43)}\n`, false],
])('knows whether %j can be a verifier', (text, expected) => {
  expect(isCodeVerifier(text)).toBe(expected);
});

test.each([
  [challenge, true],
  [challenge.slice(1), false],
  [`${challenge}=`, false],
  [challenge.replace('-', '+'), false],
])('knows whether %j can be a challenge', (text, expected) => {
  expect(isS256CodeChallenge(text)).toBe(expected);
});
