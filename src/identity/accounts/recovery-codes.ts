import { randomBytes } from 'node:crypto';
import { hashSecret } from '../../platform/crypto/hash.ts';

/** Codes that stand for a lost second factor, each once. */
export interface NewRecoveryCodes {
  /** As they are shown, once. */
  readonly codes: readonly string[];
  /** As they are stored. */
  readonly hashes: readonly string[];
}

const count = 10;
/** 80 bits: enough that the hash of one gives nothing away. */
const bytesOfCode = 10;
const alphabet = 'abcdefghijkmnpqrstuvwxyz23456789';

export function newRecoveryCodes(userId: string): NewRecoveryCodes {
  const codes = Array.from({ length: count }, () => {
    const signs = [...randomBytes((bytesOfCode * 8) / 5)].map((byte) => alphabet[byte % 32]);
    return signs.join('').replaceAll(/(.{4})(?=.)/g, '$1-');
  });
  return { codes, hashes: codes.map((code) => recoveryCodeHash(userId, code)) };
}

/** Bound to the user: the same code of another user has another hash. */
export function recoveryCodeHash(userId: string, code: string): string {
  const plain = code.slice(0, 100).toLowerCase().replaceAll(/[\s-]/g, '');
  return hashSecret(`${userId}:${plain}`);
}
