import { createHash, hash, timingSafeEqual } from 'node:crypto';

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
