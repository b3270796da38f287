import { join } from 'node:path';
import { env } from 'node:process';

/** Path of a module that is started: of the bundle as it is published in a run of tests, else of the sources. */
export function programFile(name: 'main' | 'singleuser-main'): string {
  const { HUB_TEST_PROGRAM: bundle } = env;
  return bundle === undefined
    ? join(import.meta.dirname, '..', '..', 'src', `${name}.ts`)
    : join(bundle, 'src', `${name}.js`);
}
