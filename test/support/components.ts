import { existsSync } from 'node:fs';

/**
 * Whether a program of the system that tests need is there. Without it a test is left out on a
 * developer's machine; in continuous integration its absence is an error, so that no test is left
 * out unnoticed.
 */
export function requireComponent(name: string, path: string): boolean {
  if (existsSync(path)) return true;
  if (process.env['CI']) throw new Error(`${name} is needed by the tests but ${path} is missing`);
  return false;
}
