import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** Where every test needs what stands around a hub: browsers, Jupyter, the documentation's examples, a cluster. */
const folders = ['browser', 'deploy', 'examples', 'jupyter', 'kubernetes-api', 'programs'];

/** Starts an engine of containers, jobs or pods. */
const startsEngine = /\b(?:hasDocker|hasPodman|hasCompose|hasSlurm|canRunPods)\(/;

/** Starts hubs or gateways as processes of their own, a database, a directory, a front proxy or a browser. */
const startsProcess =
  /\/support\/(?:chromium|gateway-process|glewlwyd|haproxy|hub-process|pebble|plugin-folder|postgres|redis|slapd|systemd|web-servers)\.ts'/;

/** Test files of the project `foreign`: programs and inputs that nobody here wrote, and properties, tried at length. */
export function foreignFiles(): string[] {
  const properties = globSync('{src,plugins,test}/**/*.test.ts', { cwd: root }).filter((path) =>
    readFileSync(join(root, path), 'utf8').includes('/support/properties.ts'),
  );
  return ['test/foreign/**/*.test.ts', ...properties];
}

/**
 * Test files of the project `world`: all in its folders, those elsewhere that start an engine, and those of hubs in
 * processes of their own or with other programs around them.
 */
export function worldFiles(): string[] {
  const remote = globSync('{src,plugins,test}/**/*.test.ts', { cwd: root }).filter((path) => {
    const source = readFileSync(join(root, path), 'utf8');
    return startsEngine.test(source) || (path.startsWith('test/') && startsProcess.test(source));
  });
  return [...folders.map((name) => `test/${name}/**/*.test.ts`), ...remote];
}
