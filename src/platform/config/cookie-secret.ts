import { randomBytes } from 'node:crypto';
import { link, open, readFile, stat, unlink } from 'node:fs/promises';
import { ConfigError } from '../errors.ts';
import { reasonOf } from '../files/read-file.ts';
import { Secret } from './secret.ts';

const minCharacters = 32;
const minDifferentCharacters = 8;
const path = 'Hub.cookie_secret_file';

/** Says why a configured cookie key is too weak; undefined when it is strong enough. */
export function cookieSecretProblem(key: string): string | undefined {
  const isLong = Buffer.byteLength(key) >= minCharacters;
  if (isLong && new Set(key).size >= minDifferentCharacters) return undefined;
  return `is too weak: it needs ${minCharacters} random characters; make one with: openssl rand -hex 32`;
}

/**
 * Returns the keys of the login cookie: the configured ones, else the one in the key file, which is
 * made (mode 0600) when it does not exist. Throws a ConfigError when the file cannot be trusted.
 */
export async function loadCookieSecrets(options: {
  readonly configured: readonly Secret[] | undefined;
  /** Absolute path of `Hub.cookie_secret_file`. */
  readonly file: string;
}): Promise<readonly Secret[]> {
  if (options.configured !== undefined) return options.configured;
  const existing = await readKeyFile(options.file);
  if (existing !== undefined) return [existing];
  await createKeyFile(options.file);
  // Read back: another process may have been the one to create it.
  const created = await readKeyFile(options.file);
  if (created === undefined) throw unusable(`${options.file} vanished while it was made`);
  return [created];
}

async function readKeyFile(file: string): Promise<Secret | undefined> {
  let key: string;
  let mode: number;
  try {
    mode = (await stat(file)).mode;
    key = (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unusable(`${file} cannot be read: ${reasonOf(error)}`);
  }
  if ((mode & 0o077) !== 0) {
    throw unusable(`${file} can be read by other users of this machine; run: chmod 600 ${file}`);
  }
  if (cookieSecretProblem(key) !== undefined) {
    throw unusable(
      `${file} holds no usable key; delete it to have a new one made (all users are logged out)`,
    );
  }
  return new Secret(key);
}

/** Writes a complete new file next to the wanted one and links it there, so that no process reads half a key. */
async function createKeyFile(file: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(`${randomBytes(32).toString('hex')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(temporary, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } catch (error) {
    throw unusable(`${file} cannot be made: ${reasonOf(error)}; set Hub.cookie_secret instead`);
  } finally {
    await unlink(temporary).catch(() => {
      // It was never made, and the error that tells why is already on its way.
    });
  }
}

function unusable(message: string): ConfigError {
  return new ConfigError([{ path, message }]);
}
