import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { PasswordHasher } from '../../plugin/host/authenticator.ts';
import { hashInThread } from './hash-threads.ts';

/** Cost of Argon2id (RFC 9106): memory in KiB, passes over it, lanes. */
export interface Argon2Cost {
  readonly memoryKib: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** The smallest cost that OWASP recommends for Argon2id with one lane. */
export const defaultArgon2Cost: Argon2Cost = { memoryKib: 19_456, passes: 2, parallelism: 1 };

const saltBytes = 16;
const tagBytes = 32;

/**
 * Writes Argon2id in PHC string format and reads Argon2id, scrypt and bcrypt. Passwords
 * are compared in Unicode NFC, so that one typed on another keyboard is the same (RFC 8265 §4.2).
 */
export function createPasswordHasher(cost: Argon2Cost = defaultArgon2Cost): PasswordHasher {
  let decoy: Promise<string> | undefined;

  async function hash(password: string): Promise<string> {
    const salt = randomBytes(saltBytes);
    const tag = await argon2Tag(password, salt, { ...cost, tagBytes });
    const parameters = `m=${cost.memoryKib},t=${cost.passes},p=${cost.parallelism}`;
    return `$argon2id$v=19$${parameters}$${encode(salt)}$${encode(tag)}`;
  }

  return {
    hash,

    async verify(password, passwordHash) {
      // The same work for an unknown user: the time must not tell who has an account.
      decoy ??= hash(randomBytes(saltBytes).toString('hex')).catch((error: unknown) => {
        decoy = undefined;
        throw error;
      });
      const parsed = parsePasswordHash(passwordHash ?? (await decoy));
      if (parsed === undefined) return { matches: false, needsRehash: false };
      const tag = await parsed.derive(password);
      const matches = timingSafeEqual(tag, parsed.tag) && passwordHash !== undefined;
      return { matches, needsRehash: matches && !parsed.hasCost(cost) };
    },
  };
}

interface ParsedPasswordHash {
  readonly tag: Buffer;
  derive(password: string): Promise<Buffer>;
  hasCost(cost: Argon2Cost): boolean;
}

/** Whether a text is a password hash that this hub can compare with. */
export function isPasswordHash(text: string): boolean {
  return parsePasswordHash(text) !== undefined;
}

function parsePasswordHash(text: string): ParsedPasswordHash | undefined {
  return parseArgon2(text) ?? parseScrypt(text) ?? parseBcrypt(text);
}

function parseArgon2(text: string): ParsedPasswordHash | undefined {
  const match = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([^$]+)\$([^$]+)$/.exec(
    text,
  );
  if (match === null) return undefined;
  const [memoryKib = 0, passes = 0, parallelism = 0] = match.slice(1, 4).map(Number);
  const salt = decode(match[4]);
  const tag = decode(match[5]);
  // What node:crypto would refuse with an exception.
  if (salt.length < 8 || tag.length < 4 || passes < 1 || parallelism < 1) return undefined;
  if (memoryKib < 8 * parallelism) return undefined;
  return {
    tag,
    derive: (password) =>
      argon2Tag(password, salt, { memoryKib, passes, parallelism, tagBytes: tag.length }),
    hasCost: (cost) =>
      cost.memoryKib === memoryKib &&
      cost.passes === passes &&
      cost.parallelism === parallelism &&
      tag.length === tagBytes,
  };
}

function parseScrypt(text: string): ParsedPasswordHash | undefined {
  const match = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([^$]+)\$([^$]+)$/.exec(text);
  if (match === null) return undefined;
  const [logarithm = 0, r = 0, p = 0] = match.slice(1, 4).map(Number);
  const salt = decode(match[4]);
  const tag = decode(match[5]);
  if (logarithm < 1 || logarithm > 20 || r < 1 || p < 1 || tag.length < 16) return undefined;
  const N = 2 ** logarithm;
  return {
    tag,
    derive: (password) =>
      hashInThread({
        algorithm: 'scrypt',
        password: normalise(password),
        salt,
        tagBytes: tag.length,
        N,
        r,
        p,
      }),
    hasCost: () => false,
  };
}

/** Of other programs; the hub makes none. */
const bcryptHash = /^(\$2[aby]\$(?:0[4-9]|1[0-6])\$[./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/;

/** Whether a hash is one that the hub replaces at the next login. */
export function isBcryptHash(text: string): boolean {
  return bcryptHash.test(text);
}

function parseBcrypt(text: string): ParsedPasswordHash | undefined {
  const [, salt, tag] = bcryptHash.exec(text) ?? [];
  if (salt === undefined || tag === undefined) return undefined;
  return {
    tag: Buffer.from(tag),
    derive: (password) =>
      hashInThread({ algorithm: 'bcrypt', password: normalise(password), salt }),
    hasCost: () => false,
  };
}

function argon2Tag(
  password: string,
  salt: Buffer,
  cost: Argon2Cost & { readonly tagBytes: number },
): Promise<Buffer> {
  return hashInThread({ algorithm: 'argon2id', password: normalise(password), salt, ...cost });
}

function normalise(password: string): string {
  return password.normalize('NFC');
}

function encode(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

function decode(text = ''): Buffer {
  return Buffer.from(text, 'base64');
}
