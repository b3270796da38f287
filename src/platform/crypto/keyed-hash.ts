import { createHmac, hkdfSync } from 'node:crypto';
import type { Secret } from '../config/secret.ts';
import { equalSecrets } from './hash.ts';

/** Proves that a text came from the hub, without keeping it anywhere. */
export interface KeyedHash {
  /** HMAC-SHA256 of a text, base64url, with the first key. */
  sign(text: string): string;
  /** Whether any current key gave this signature to the text; constant time. */
  verify(text: string, signature: string): boolean;
}

/** Keys are derived per purpose, as for a sealer. */
export function createKeyedHash(secrets: readonly Secret[], purpose: string): KeyedHash {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret.reveal(), 'hub', purpose, 32)),
  );
  const [firstKey] = keys;
  if (firstKey === undefined) throw new TypeError('a keyed hash needs at least one secret');
  const hashWith = (key: Buffer, text: string) =>
    createHmac('sha256', key).update(text).digest('base64url');

  return {
    sign: (text) => hashWith(firstKey, text),
    verify: (text, signature) => keys.some((key) => equalSecrets(hashWith(key, text), signature)),
  };
}
