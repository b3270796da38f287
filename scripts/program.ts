import { chmodSync, cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..');

/** Of what is published; in this folder, npm brings Node.js along. */
const engines = { node: '>=24.14.1' };

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const manifest = readJson(join(root, 'package.json')) as Manifest;

/** Sources of what a build is made of, relative to the project. */
export const programSources = [
  'package.json',
  'package-lock.json',
  'bin/*',
  '{src,plugins}/**/*',
  'test/contract/*',
];

/**
 * Writes the program with the packages it uses to a folder, in as few modules as it loads together, with the files
 * that its pages need and a `package.json` of its own. Returns the folders of the packages that are in it.
 */
export async function bundleProgram(folder: string): Promise<ReadonlySet<string>> {
  const { imported, bundled } = await writeModules(folder);
  for (const file of globSync(['src/**/*.{css,svg,js,json}', 'bin/*'], { cwd: root })) {
    cpSync(join(root, file), join(folder, file));
  }
  const published = `${JSON.stringify(publishedManifest(imported), undefined, 2)}\n`;
  writeFileSync(join(folder, 'package.json'), published);
  for (const file of Object.values(manifest.bin)) chmodSync(join(folder, compiled(file)), 0o755);
  return bundled;
}

/** Returns the packages that the program imports by their names, and the folders of those that are in it. */
async function writeModules(
  folder: string,
): Promise<{ imported: Set<string>; bundled: Set<string> }> {
  const entries = [
    ...Object.values(manifest.bin),
    ...Object.values(manifest.exports),
    ...globSync('plugins/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] }),
    ...startedByPath(),
  ].map((file) => file.replace(/^\.\//, ''));
  const program = await rolldown({
    cwd: root,
    platform: 'node',
    input: Object.fromEntries(entries.map((file) => [file.replace(/\.ts$/, ''), file])),
    external: isImported,
    // Packages that have modules beside what they had before them.
    resolve: { mainFields: ['module', 'main'] },
    transform: { target: 'esnext' },
    // What packages do in their own code is theirs.
    onLog: (level, log, report) => {
      if (!log.id?.includes('/node_modules/')) report(level, log);
    },
  });
  const { output } = await program.write({
    dir: folder,
    entryFileNames: '[name].js',
    chunkFileNames: 'src/program/[name]-[hash].js',
    keepNames: true,
    comments: { legal: true },
  });
  const chunks = output.filter((file) => file.type === 'chunk');
  const names = chunks
    .flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
    .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
  const folders = chunks
    .flatMap(({ moduleIds }) => moduleIds)
    .map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0])
    .filter((folder) => folder !== undefined);
  return {
    imported: new Set(names.filter((name) => name in manifest.dependencies)),
    bundled: new Set(folders),
  };
}

/** Modules that the program starts by their path: see programFile. */
function startedByPath(): string[] {
  const sources = globSync('src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] });
  return sources.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/programFile\('([^']+)'\)/g)].map(
      ([, module]) => `${module}.ts`,
    ),
  );
}

/**
 * What stays out: this package's own name, zod, which plugins share with the hub, what is compiled for a machine or
 * reads files of its own, and what packages use only where it is installed.
 */
function isImported(id: string, importer: string | undefined): boolean {
  if (/^zod(?:\/|$)/.test(id)) return !importer?.includes('/node_modules/');
  return /^(?:node:|hub\/|koffi$|dockerode$|pg-native$|cpu-features$)/.test(id);
}

/** The manifest without what only development needs, its paths those of the compiled files. */
function publishedManifest(imported: ReadonlySet<string>): object {
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
    dependencies: Object.fromEntries(
      Object.entries(manifest.dependencies).filter(([name]) => imported.has(name)),
    ),
  };
}

function compiled(file: string): string {
  return file.replace(/\.ts$/, '.js');
}

export function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
}
