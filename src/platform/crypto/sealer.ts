import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Secret } from '../config/secret.ts';

const ivLength = 12;
const tagLength = 16;
const formatVersion = 1;

/** Encrypts short texts so that only the holder of a key can read or make them. */
export interface Sealer {
  /** Encrypts; `context` (such as the cookie's name) must be the same when opening. URL-safe text. */
  seal(plaintext: string, context: string): string;
  /** Decrypts, or returns undefined for anything that no current key sealed in this context. */
  open(sealed: string, context: string): string | undefined;
  /** What a former key sealed, sealed with the first; undefined where the first did, or no key opens it. */
  renew(sealed: string, context: string): string | undefined;
}

/**
 * Seals with AES-256-GCM. The first secret encrypts, all of them decrypt, so a key can be
 * replaced without losing what the old one sealed. Keys are derived per purpose (HKDF, RFC 5869):
 * what was sealed for one purpose does not open for another.
 */
export function createSealer(secrets: readonly Secret[], purpose: string): Sealer {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret.reveal(), 'hub', purpose, 32)),
  );
  const [encryptionKey] = keys;
  if (encryptionKey === undefined) throw new TypeError('a sealer needs at least one secret');

  function openWith(
    candidates: readonly Buffer[],
    sealed: string,
    context: string,
  ): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes[0] !== formatVersion || bytes.length < 1 + ivLength + tagLength) return undefined;
    const iv = bytes.subarray(1, 1 + ivLength);
    const tag = bytes.subarray(1 + ivLength, 1 + ivLength + tagLength);
    const body = bytes.subarray(1 + ivLength + tagLength);
    for (const key of candidates) {
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, iv);
        decipher.setAAD(Buffer.from(context));
        decipher.setAuthTag(tag);
        return decipher.update(body, undefined, 'utf8') + decipher.final('utf8');
      } catch {
        // Another key may have sealed it; a forgery fails with all of them.
      }
    }
    return undefined;
  }

  const sealer: Sealer = {
    seal(plaintext, context) {
      const iv = randomBytes(ivLength);
      const cipher = createCipheriv('aes-256-gcm', encryptionKey, iv);
      cipher.setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
      return Buffer.concat([Buffer.of(formatVersion), iv, cipher.getAuthTag(), body]).toString(
        'base64url',
      );
    },
    open: (sealed, context) => openWith(keys, sealed, context),
    renew(sealed, context) {
      if (openWith([encryptionKey], sealed, context) !== undefined) return undefined;
      const opened = openWith(keys, sealed, context);
      return opened === undefined ? undefined : sealer.seal(opened, context);
    },
  };
  return sealer;
}
