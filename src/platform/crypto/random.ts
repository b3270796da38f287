import { randomBytes } from 'node:crypto';

/** A random URL-safe secret with the given number of bytes of randomness. */
export function randomSecret(byteCount = 32): string {
  return randomBytes(byteCount).toString('base64url');
}

/** What every token of the hub begins with, so that a leaked one is recognised by scanners. */
export const tokenPrefix = 'hub_';

/** A new access token: recognisable prefix and 256 bits of randomness. */
export function randomToken(): string {
  return tokenPrefix + randomSecret();
}
