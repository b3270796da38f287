/**
 * bcrypt, to compare passwords with hashes of other programs; the hub makes none. By Provos and Mazières, “A
 * Future-Adaptable Password Scheme” (USENIX 1999), and Schneier's description of Blowfish (1993).
 */

/** What of a hash the password is hashed with. */
export interface BcryptParameters {
  /** 16 bytes. */
  readonly salt: Uint8Array;
  /** The logarithm of the number of rounds. */
  readonly cost: number;
}

const roundCount = 16;
const boxWords = 256;
const keyWords = roundCount + 2;
const magic = 'OrpheanBeholderScryDoubt';
/** Bytes of a password that count, with the zero at its end. */
const maxKeyBytes = 72;

/** The 23 bytes that a hash ends with. They take as long as `cost` says: not for a thread that serves requests. */
export function bcryptTag(password: string, { salt, cost }: BcryptParameters): Buffer {
  const key = Buffer.from(`${password}\0`).subarray(0, maxKeyBytes);
  const [keyStream, saltStream] = [wordsOf(key, keyWords), wordsOf(salt, keyWords)];
  const state = initialState().slice();
  const [nothing, saltBlocks] = [new Int32Array(4), wordsOf(salt, 4)];
  expandKey(state, keyStream, saltBlocks);
  for (let round = 0; round < 2 ** cost; round += 1) {
    expandKey(state, keyStream, nothing);
    expandKey(state, saltStream, nothing);
  }
  const text = wordsOf(Buffer.from(magic), magic.length / 4);
  for (let at = 0; at < text.length; at += 2)
    for (let times = 0; times < 64; times += 1) encrypt(state, text, at);
  const tag = Buffer.alloc(magic.length);
  for (const [at, word] of text.entries()) tag.writeInt32BE(word, at * 4);
  return tag.subarray(0, -1);
}

/** Mixes a key into the state, and encrypts all of that in turn, each block with one half of the salt mixed in. */
function expandKey(state: Int32Array, key: Int32Array, salt: Int32Array): void {
  for (let at = 0; at < keyWords; at += 1) state[at] = word(state, at) ^ word(key, at);
  const block = new Int32Array(2);
  for (let at = 0; at < state.length; at += 2) {
    block[0] = word(block, 0) ^ word(salt, at % 4);
    block[1] = word(block, 1) ^ word(salt, (at + 1) % 4);
    encrypt(state, block, 0);
    state.set(block, at);
  }
}

/** Blowfish: the two words of a block, in place. The state has the keys of the rounds first, and then the four boxes. */
function encrypt(state: Int32Array, block: Int32Array, at: number): void {
  let left = word(block, at) ^ word(state, 0);
  let right = word(block, at + 1);
  for (let round = 1; round <= roundCount; round += 2) {
    right ^= mix(state, left) ^ word(state, round);
    left ^= mix(state, right) ^ word(state, round + 1);
  }
  block[at] = right ^ word(state, keyWords - 1);
  block[at + 1] = left;
}

function mix(state: Int32Array, half: number): number {
  const first = word(state, keyWords + (half >>> 24));
  const second = word(state, keyWords + boxWords + ((half >>> 16) & 0xff));
  const third = word(state, keyWords + 2 * boxWords + ((half >>> 8) & 0xff));
  return (((first + second) ^ third) + word(state, keyWords + 3 * boxWords + (half & 0xff))) | 0;
}

const word = (words: Int32Array, at: number): number => words[at] as number;

/** Bytes as words, repeated as often as wanted. */
function wordsOf(bytes: Uint8Array, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, at) =>
    [0, 1, 2, 3].reduce(
      (value, byte) => (value << 8) | (bytes[(at * 4 + byte) % bytes.length] as number),
      0,
    ),
  );
}

let digitsOfPi: Int32Array | undefined;

/** The fractional part of π, by Machin's formula: what Blowfish begins with. */
function initialState(): Int32Array {
  if (digitsOfPi !== undefined) return digitsOfPi;
  const count = keyWords + 4 * boxWords;
  const spareBits = 64n;
  const one = 1n << (BigInt(count * 32) + spareBits);
  const inverseTangent = (divisor: bigint) => {
    let sum = 0n;
    let power = one / divisor;
    for (let odd = 1n; power !== 0n; odd += 2n, power /= -(divisor * divisor)) sum += power / odd;
    return sum;
  };
  const pi = 16n * inverseTangent(5n) - 4n * inverseTangent(239n);
  const hex = ((pi >> spareBits) & ((1n << BigInt(count * 32)) - 1n)).toString(16);
  const bytes = Buffer.from(hex.padStart(count * 8, '0'), 'hex');
  digitsOfPi = wordsOf(bytes, count);
  return digitsOfPi;
}

const alphabet = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const standard = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Reads `$2b$12$<salt><tag>`, also with `2a` and `2y`; undefined for anything else. */
export function readBcrypt(
  text: string,
): (BcryptParameters & { readonly tag: Buffer }) | undefined {
  const [, cost = '', salt = '', tag = ''] =
    /^\$2[aby]\$(0[4-9]|1[0-6])\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/.exec(text) ?? [];
  if (cost === '') return undefined;
  const decode = (part: string) =>
    Buffer.from([...part].map((letter) => standard[alphabet.indexOf(letter)]).join(''), 'base64');
  return { cost: Number(cost), salt: decode(salt), tag: decode(tag) };
}
