import {
  createHash,
  createHmac,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto';
import type { Secret } from '../config/secret.ts';

/**
 * SHA-256 of a random secret, as base64url. Only for secrets with at least 128 bits of randomness:
 * anything a person chose needs a slow hash instead.
 */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** Whether two secrets are equal, in a time that tells nothing about where they differ. */
export function equalSecrets(left: string, right: string): boolean {
  // Hashing first gives both sides the same length, which timingSafeEqual demands.
  return timingSafeEqual(
    createHash('sha256').update(left).digest(),
    createHash('sha256').update(right).digest(),
  );
}

/** Proves that a text came from the hub, without keeping it anywhere. */
export interface KeyedHash {
  /** HMAC-SHA256 of a text, base64url, with the first key. */
  sign(text: string): string;
  /** Whether any current key gave this signature to the text; constant time. */
  verify(text: string, signature: string): boolean;
}

/** Keys are derived per purpose, as for a sealer. */
export function createKeyedHash(secrets: readonly Secret[], purpose: string): KeyedHash {
  // Made once: to make one of bytes takes five times as long as the hash.
  const keys = secrets.map((secret) =>
    createSecretKey(Buffer.from(hkdfSync('sha256', secret.reveal(), 'hub', purpose, 32))),
  );
  const [firstKey] = keys;
  if (firstKey === undefined) throw new TypeError('a keyed hash needs at least one secret');
  const hashWith = (key: KeyObject, text: string) =>
    createHmac('sha256', key).update(text).digest('base64url');

  return {
    sign: (text) => hashWith(firstKey, text),
    verify: (text, signature) => keys.some((key) => equalSecrets(hashWith(key, text), signature)),
  };
}
