import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { reasonOf } from '../files/read-file.ts';

/** Where references to secrets lead: the environment and the folder of the configuration file. */
export interface SecretSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
}

export type ResolvedSecret =
  | { readonly outcome: 'resolved'; readonly value: string; readonly warning?: string }
  | { readonly outcome: 'unresolved'; readonly message: string };

const envReference = z.strictObject({ env: z.string().min(1) });
const fileReference = z.strictObject({ file: z.string().min(1) });

const maxSecretBytes = 64 * 1024;

/**
 * Resolves `{"env": "NAME"}` or `{"file": "path"}`; undefined for anything else, which the schema
 * then judges. Neither the value nor any other variable ever stands in a message.
 */
export function resolveSecret(value: unknown, sources: SecretSources): ResolvedSecret | undefined {
  const fromEnv = envReference.safeParse(value);
  if (fromEnv.success) return readVariable(fromEnv.data.env, sources.env);
  const fromFile = fileReference.safeParse(value);
  if (fromFile.success) return readSecretFile(resolve(sources.directory, fromFile.data.file));
  return undefined;
}

function readVariable(name: string, env: SecretSources['env']): ResolvedSecret {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value === undefined) return unresolved(`the environment variable ${name} is not set`);
  if (value === '') return unresolved(`the environment variable ${name} is empty`);
  return { outcome: 'resolved', value };
}

function readSecretFile(file: string): ResolvedSecret {
  let text: string;
  let mode: number;
  try {
    const stats = statSync(file);
    if (!stats.isFile()) return unresolved(`${file} is not a file`);
    if (stats.size > maxSecretBytes) return unresolved(`${file} is too large for a secret`);
    mode = stats.mode;
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return unresolved(`${file} cannot be read: ${reasonOf(error)}`);
  }
  const value = text.replace(/\r?\n$/, '');
  if (value === '') return unresolved(`${file} is empty`);
  if ((mode & 0o077) === 0 || isPublic(value)) return { outcome: 'resolved', value };
  const warning = `${file} can be read by other users of this machine; run: chmod 600 ${file}`;
  return { outcome: 'resolved', value, warning };
}

/** Whether a text consists of certificates and public keys only (RFC 7468): those may be public. */
function isPublic(text: string): boolean {
  const labels = [...text.matchAll(/^-----BEGIN ([^-]+)-----/gm)].map(([, label = '']) => label);
  return (
    labels.length > 0 && labels.every((label) => /(?:CERTIFICATE|PUBLIC KEY|CRL)$/.test(label))
  );
}

function unresolved(message: string): ResolvedSecret {
  return { outcome: 'unresolved', message };
}
