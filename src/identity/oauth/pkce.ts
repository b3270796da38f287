import { equalSecrets, hashSecret } from '../../platform/crypto/hash.ts';

/** Whether a text can be an S256 `code_challenge`: 256 bits in base64url (RFC 7636 §4.2). */
export function isS256CodeChallenge(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** Whether a text can be a `code_verifier`: 43 to 128 unreserved characters (RFC 7636 §4.1). */
export function isCodeVerifier(text: string): boolean {
  return /^[A-Za-z0-9._~-]{43,128}$/.test(text);
}

/** Verifies a `code_verifier` against the stored S256 `code_challenge` (RFC 7636 §4.6). */
export function verifyCodeVerifier(codeVerifier: string, codeChallenge: string): boolean {
  return isCodeVerifier(codeVerifier) && equalSecrets(hashSecret(codeVerifier), codeChallenge);
}
