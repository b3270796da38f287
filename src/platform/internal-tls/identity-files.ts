import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartupError } from '../errors.ts';
import { makeDirectory } from '../files/make-directory.ts';
import { explainMover, findMover } from '../files/movable-path.ts';
import { reasonOf } from '../files/read-file.ts';
import type { FindIdentity, TlsIdentity } from './internal-authority.ts';

/** Variables that name the files of an identity, as JupyterHub calls them. */
export type IdentityVariables = Readonly<Record<(typeof variables)[number], string>>;
const variables = [
  'JUPYTERHUB_SSL_CERTFILE',
  'JUPYTERHUB_SSL_KEYFILE',
  'JUPYTERHUB_SSL_CLIENT_CA',
] as const;

/** How long one that was read is used before it is looked at once more. */
const readAgainMs = 60_000;

export function identityVariables(folder: string, name: string): IdentityVariables {
  // Certificate and key are one file, so that nobody reads those of two renewals.
  const pair = join(folder, `${name}.pem`);
  return {
    JUPYTERHUB_SSL_CERTFILE: pair,
    JUPYTERHUB_SSL_KEYFILE: pair,
    JUPYTERHUB_SSL_CLIENT_CA: join(folder, `${name}-ca.pem`),
  };
}

/**
 * Writes the files that the variables name, for the account of this process alone. Throws StartupError where another account
 * could put its own in their place, and so have gateways trust its authority.
 */
export async function writeIdentity(
  folder: string,
  { name, cert, key, ca }: TlsIdentity & { readonly name: string },
  trusted: { readonly users: readonly number[]; readonly groups: readonly number[] },
): Promise<void> {
  const files = identityVariables(folder, name);
  await makeDirectory(folder, 0o700);
  const mover = await findMover(files.JUPYTERHUB_SSL_CERTFILE, trusted.users, trusted.groups);
  if (mover !== undefined) {
    throw new StartupError(`Hub.internal_certs_location: ${explainMover(folder, mover)}`);
  }
  await replaceFile(files.JUPYTERHUB_SSL_CLIENT_CA, ca);
  await replaceFile(files.JUPYTERHUB_SSL_CERTFILE, `${cert}\n${key}`);
}

async function replaceFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(temporary, content, { mode: 0o600, flag: 'wx' });
  await rename(temporary, path);
}

/** Finds the identity in the files that the environment names. Throws StartupError where they cannot be read at first. */
export function readIdentityFiles(
  environment: Readonly<Record<string, string | undefined>>,
): FindIdentity {
  const [certFile, keyFile, caFile] = variables.map((name) => environment[name]);
  if (certFile === undefined || keyFile === undefined || caFile === undefined) {
    return () => undefined;
  }
  const read = () => {
    const [cert = '', key = '', ca = ''] = [certFile, keyFile, caFile].map((file) =>
      readFileSync(file, 'utf8'),
    );
    return { cert, key, ca };
  };
  let identity: TlsIdentity;
  let readAtMs = performance.now();
  try {
    identity = read();
  } catch (error) {
    throw new StartupError(`${variables.join(', ')}: ${reasonOf(error)}`, { cause: error });
  }
  return () => {
    if (performance.now() - readAtMs > readAgainMs) {
      readAtMs = performance.now();
      try {
        identity = read();
      } catch {
        // They are being replaced, or gone: the former one is good for as long as it is valid.
      }
    }
    return identity;
  };
}
