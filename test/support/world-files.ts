import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** Where every test needs what stands around a hub: browsers, Jupyter, the documentation's examples, a cluster. */
const folders = ['browser', 'deploy', 'examples', 'jupyter', 'kubernetes-api', 'programs'];

/** Starts an engine of containers, jobs or pods. */
const startsEngine = /\b(?:hasDocker|hasPodman|hasCompose|hasSlurm|canRunPods)\(/;

/** Test files of the project `foreign`: programs and inputs that nobody here wrote, and properties, tried at length. */
export function foreignFiles(): string[] {
  const properties = globSync('{src,plugins,test}/**/*.test.ts', { cwd: root }).filter((path) =>
    readFileSync(join(root, path), 'utf8').includes('/support/properties.ts'),
  );
  return ['test/foreign/**/*.test.ts', ...properties];
}

/** Test files of the project `world`: all in its folders, and those elsewhere that start an engine. */
export function worldFiles(): string[] {
  const remote = globSync('{src,plugins,test}/**/*.test.ts', { cwd: root }).filter((path) =>
    startsEngine.test(readFileSync(join(root, path), 'utf8')),
  );
  return [...folders.map((name) => `test/${name}/**/*.test.ts`), ...remote];
}
