import { join } from 'node:path';

/**
 * Runs a program with its types stripped and compiled before: processes that a hub starts do not get
 * the environment of the tests, which says so to all others.
 */
export const nodeCommand: readonly string[] = [
  process.execPath,
  '--import',
  join(import.meta.dirname, '..', '..', 'fixtures', 'apps', 'keep-compiled.mjs'),
];
