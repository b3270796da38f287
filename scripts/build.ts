/**
 * Builds what is published: `dist/`, the program with the packages it uses in as few modules as it loads
 * together, with declarations, the files the pages need, and a `package.json` of its own. Run with
 * `npm run build`.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

/** Of what is published; in this folder, npm brings Node.js along. */
const engines = { node: '>=24.14.1' };

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const manifest = readJson(join(root, 'package.json')) as Manifest;
rmSync(dist, { recursive: true, force: true });
declareTypes();
const { imported, bundled } = await bundle();
for (const file of globSync(['src/**/*.{css,svg,js,json}', 'bin/*'], { cwd: root })) copy(file);
for (const file of ['README.md', 'CHANGELOG.md', 'LICENSE', 'SECURITY.md', 'hub.schema.json'])
  copy(file);
writeFileSync(
  join(dist, 'package.json'),
  `${JSON.stringify(publishedManifest(imported), undefined, 2)}\n`,
);
writeFileSync(join(dist, 'THIRD-PARTY-LICENSES.md'), licensesOf(bundled));
for (const file of Object.values(manifest.bin)) chmodSync(join(dist, compiled(file)), 0o755);

function declareTypes(): void {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

/** Returns the packages that the program imports by their names, and the folders of those that are in it. */
async function bundle(): Promise<{ imported: Set<string>; bundled: Set<string> }> {
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
    dir: dist,
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
 * What stays out: this package's own name, zod, which plugins share with the hub, what is compiled for a machine, and
 * what packages use only where it is installed.
 */
function isImported(id: string, importer: string | undefined): boolean {
  if (/^zod(?:\/|$)/.test(id)) return !importer?.includes('/node_modules/');
  return /^(?:node:|hub\/|koffi$|pg-native$|cpu-features$)/.test(id);
}

function copy(file: string): void {
  const target = join(dist, file);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(join(root, file), target);
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

/** Names, versions and licences of the packages in the program, as these licences demand. */
function licensesOf(folders: ReadonlySet<string>): string {
  const packages = [...folders].map((folder) => {
    const { name, version, license } = readJson(join(folder, 'package.json'));
    const [file] = globSync('{LICEN[CS]E,licen[cs]e,COPYING}*', { cwd: folder });
    const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
    return `## ${name} ${version}\n\n${license}\n\n${text.replaceAll(/^/gm, '    ')}\n`;
  });
  return `# Packages in this program\n\n${packages.toSorted().join('\n')}`;
}

function compiled(file: string): string {
  return file.replace(/\.ts$/, '.js');
}

function readJson(file: string): Record<string, unknown> {
  if (!existsSync(file)) throw new Error(`${file} is missing`);
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
}
