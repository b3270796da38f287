/**
 * Builds what is published: `dist/`, JavaScript with declarations, the files the pages need, and a
 * `package.json` of its own. Run with `npm run build`.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

/** Of what is published; in this folder, npm brings Node.js along. */
const engines = { node: '>=24.14.1' };

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

rmSync(dist, { recursive: true, force: true });
compile();
for (const file of globSync(['src/**/*.{css,svg,js,json}', 'bin/*'], { cwd: root })) copy(file);
for (const file of ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'hub.schema.json']) copy(file);
const manifest = publishedManifest(readJson(join(root, 'package.json')));
writeFileSync(join(dist, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
for (const file of Object.values(manifest.bin)) chmodSync(join(dist, file), 0o755);

function compile(): void {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

function copy(file: string): void {
  const target = join(dist, file);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(join(root, file), target);
}

/** The manifest without what only development needs, its paths those of the compiled files. */
function publishedManifest(manifest: Manifest): Manifest {
  const { private: _, scripts: __, devDependencies: ___, allowScripts: ____, ...kept } = manifest;
  const exported = Object.entries(manifest.exports).map(([name, file]) => [
    name,
    { types: file.replace(/\.ts$/, '.d.ts'), default: compiled(file) },
  ]);
  return {
    ...kept,
    engines,
    bin: Object.fromEntries(
      Object.entries(manifest.bin).map(([name, file]) => [name, compiled(file)]),
    ),
    exports: { ...Object.fromEntries(exported), './package.json': './package.json' },
  };
}

function compiled(file: string): string {
  return file.replace(/\.ts$/, '.js');
}

function readJson(file: string): Manifest {
  return JSON.parse(readFileSync(file, 'utf8'));
}
