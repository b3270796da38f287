import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Secret } from '../config/secret.ts';
import { StartupError } from '../errors.ts';

/** A file is this, a salt, a nonce, the content by AES-256-GCM, and its tag. */
const magic = Buffer.from('hub-sealed-1\n');
const [saltBytes, nonceBytes, tagBytes] = [16, 12, 16];
const headBytes = magic.length + saltBytes + nonceBytes;
/** 128 MiB for half a second: a guess at the passphrase costs as much. */
const cost = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 2 ** 20 };
const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);

const keyOf = (passphrase: Secret, salt: Buffer) => derive(passphrase.reveal(), salt, 32, cost);

/** Writes something encrypted to a new file of mode 0600. Rejects where there is one already. */
export async function sealFile(
  source: Readable,
  target: string,
  passphrase: Secret,
): Promise<void> {
  const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)];
  const cipher = createCipheriv('aes-256-gcm', await keyOf(passphrase, salt), nonce);
  const sealed = createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true });
  sealed.write(Buffer.concat([magic, salt, nonce]));
  await pipeline(
    source,
    cipher,
    async function* (chunks: AsyncIterable<Buffer>) {
      yield* chunks;
      yield cipher.getAuthTag();
    },
    sealed,
  );
}

/** Whether a file is an encrypted one. Rejects where it cannot be read. */
export async function isSealed(path: string): Promise<boolean> {
  await using file = await open(path);
  return (await read(file, 0, magic.length)).equals(magic);
}

/**
 * Decrypts a file into a new one of mode 0600, of which nothing is left where it is not whole. Throws StartupError for a
 * wrong passphrase or a changed file.
 */
export async function openSealed(
  source: string,
  target: string,
  passphrase: Secret,
): Promise<void> {
  await using file = await open(source);
  const end = (await file.stat()).size - tagBytes;
  if (end < headBytes) throw new StartupError(`${source} is damaged: it is too short`);
  const head = await read(file, magic.length, saltBytes + nonceBytes);
  const key = await keyOf(passphrase, head.subarray(0, saltBytes));
  const decipher = createDecipheriv('aes-256-gcm', key, head.subarray(saltBytes));
  decipher.setAuthTag(await read(file, end, tagBytes));
  try {
    await pipeline(
      end === headBytes ? [] : createReadStream(source, { start: headBytes, end: end - 1 }),
      decipher,
      createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true }),
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    await rm(target, { force: true });
    const isWrong = error instanceof Error && /unable to authenticate/i.test(error.message);
    if (!isWrong) throw error;
    throw new StartupError(
      `${source}: the passphrase is not that of this backup, or it is damaged`,
      {
        cause: error,
      },
    );
  }
}

async function read(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}
