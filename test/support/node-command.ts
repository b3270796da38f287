import { existsSync } from 'node:fs';
import { join } from 'node:path';

const apps = join(import.meta.dirname, '..', '..', 'fixtures', 'apps');

/** Runs a program with its types stripped and compiled before. */
const withoutTypes = [process.execPath, '--import', join(apps, 'keep-compiled.mjs')];

/**
 * The command of a program: processes that a hub starts do not get the environment of the tests, which says to all
 * others where what is compiled is kept.
 */
export function nodeCommand(file: string, ...rest: string[]): string[] {
  return [...(file.endsWith('.ts') ? withoutTypes : [process.execPath]), file, ...rest];
}

/**
 * The file of a program of `fixtures/apps`. Those that are started hundreds of times are CommonJS, which starts in a
 * quarter of the time.
 */
export function fixtureFile(name: string): string {
  const file = join(apps, `${name}.cjs`);
  return existsSync(file) ? file : join(apps, `${name}.ts`);
}
