import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RolldownOptions, type RolldownOutput, rolldown } from 'rolldown';
import { type LockFile, shrinkwrapOf } from './lock-file.ts';

const root = join(import.meta.dirname, '..');

/** Of what is published; in this folder, npm brings Node.js along. */
const engines = { node: '>=24.14.1' };

/** For engines of containers over SSH, which the hub does not offer. */
const compiledAtInstallation = ['cpu-features', 'nan'];

/** The client library runs in services, whose Node.js is not the hub's. */
const clientEngines = { node: '>=20' };

interface Manifest {
  readonly name: string;
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
  'deploy/hub.service',
  'scripts/program.ts',
  '{src,plugins}/**/*',
  'examples/workspace/*',
  'test/contract/*',
];

/**
 * Writes the program with the packages it uses to a folder, in as few modules as it loads together, with the files
 * that its pages need and a `package.json` of its own. Returns the folders of the packages that are in it.
 */
export async function bundleProgram(folder: string): Promise<ReadonlySet<string>> {
  const { imported, bundled } = await writeModules(folder);
  for (const file of globSync(
    ['src/**/*.{css,svg,js,json}', 'examples/workspace/*.{css,js}', 'bin/*', 'deploy/hub.service'],
    {
      cwd: root,
    },
  )) {
    cpSync(join(root, file), join(folder, file));
  }
  const published = publishedManifest(imported);
  writeJson(join(folder, 'package.json'), published);
  const lock = readJson(join(root, 'package-lock.json')) as unknown as LockFile;
  writeJson(
    join(folder, 'npm-shrinkwrap.json'),
    shrinkwrapOf(lock, published, compiledAtInstallation),
  );
  for (const [name, file] of Object.entries(manifest.bin)) {
    const start = `import('../${compiled(file).replace(/^\.\//, '')}');`;
    writeFileSync(join(folder, entryFile(name)), entryText(name, start), { mode: 0o755 });
  }
  await bundleSingleuser(folder);
  return bundled;
}

/** Where npm finds a program of the package. */
function entryFile(name: string): string {
  return `bin/${name}.cjs`;
}

const common: RolldownOptions = {
  cwd: root,
  platform: 'node',
  external: isImported,
  // Packages that have modules beside what they had before them.
  resolve: { mainFields: ['module', 'main'] },
  transform: { target: 'esnext' },
  plugins: [
    {
      name: 'ascii',
      generateBundle(_, files) {
        for (const file of Object.values(files)) {
          if (file.type === 'chunk') file.code = inAscii(file.code);
        }
      },
    },
  ],
  // What packages do in their own code is theirs.
  onLog: (level, log, report) => {
    if (!log.id?.includes('/node_modules/')) report(level, log);
  },
};

/** Escapes what is beyond ASCII: one such character has Node.js keep the text of the whole module in twice the memory. */
function inAscii(code: string): string {
  return code.replaceAll(
    /[^\0-\x7f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** `hub-singleuser` with all that it needs, for images of users' servers. */
export const singleuserFile = 'hub-singleuser.cjs';

/**
 * Writes `hub-singleuser` to a folder as one file, which needs nothing but Node.js: its program is text in it, so that
 * an old Node.js can read the file, and says what it needs.
 */
async function bundleSingleuser(folder: string): Promise<void> {
  const program = await rolldown({ ...common, input: 'src/singleuser/run.ts' });
  const options = { format: 'cjs', keepNames: true, comments: { legal: true } } as const;
  const { output } = await program.generate({ ...options, codeSplitting: false });
  const text = `var vm = require('vm');
var code = ${JSON.stringify(output[0].code)};
var importModuleDynamically = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
var options = { filename: __filename, importModuleDynamically: importModuleDynamically };
vm.compileFunction(code, ['require', 'module', 'exports', '__filename'], options)(require, module, exports, __filename);
exports.run();`;
  writeFileSync(join(folder, singleuserFile), entryText('hub-singleuser', text), { mode: 0o755 });
}

/** An old Node.js fails on the syntax of the program itself, and says nothing of what is needed. */
function entryText(name: string, start: string): string {
  const needed = engines.node.slice(2);
  return `#!/usr/bin/env node
var needed = '${needed}'.split('.').map(Number);
var found = process.versions.node.split('.').map(Number);
if (found[0] < needed[0] || (found[0] === needed[0] && found[1] < needed[1])) {
  console.error('${name} needs Node.js ${needed} or newer, and this is ' + process.versions.node + ' (' + process.execPath + ').');
  process.exit(1);
}
${start}
`;
}

/**
 * Writes the client library as a package of its own to a folder where its declarations are already: one module
 * without dependencies, so that a service installs nothing of what only a hub needs.
 */
export async function bundleClient(folder: string): Promise<ReadonlySet<string>> {
  const { name, version, license } = manifest;
  const program = await rolldown({
    cwd: root,
    platform: 'node',
    input: { 'src/client/client': manifest.exports['./client'] ?? '' },
    transform: { target: 'node20' },
  });
  const { output } = await program.write({ dir: folder, comments: { legal: true } });
  const published = {
    name: name.replace(/[^/]+$/, 'client'),
    version,
    description: 'Lets the users of a Hub into a web app: for node:http, Koa and Express.',
    license,
    type: 'module',
    engines: clientEngines,
    exports: {
      '.': { types: './src/client/client.d.ts', default: './src/client/client.js' },
      './package.json': './package.json',
    },
  };
  writeJson(join(folder, 'package.json'), published);
  return foldersOf(output);
}

/** Returns the packages that the program imports by their names, and the folders of those that are in it. */
async function writeModules(
  folder: string,
): Promise<{ imported: Set<string>; bundled: ReadonlySet<string> }> {
  const entries = [
    ...Object.values(manifest.bin),
    ...Object.values(manifest.exports),
    ...globSync('plugins/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] }),
    ...startedByPath(),
  ].map((file) => file.replace(/^\.\//, ''));
  const program = await rolldown({
    ...common,
    input: Object.fromEntries(entries.map((file) => [file.replace(/\.ts$/, ''), file])),
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
  return {
    imported: new Set(names.filter((name) => name in manifest.dependencies)),
    bundled: foldersOf(output),
  };
}

/** The folders of the packages that are in what was written. */
function foldersOf(output: RolldownOutput['output']): ReadonlySet<string> {
  const folders = output
    .flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
    .map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0])
    .filter((folder) => folder !== undefined);
  return new Set(folders);
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
  return (
    id.startsWith(`${manifest.name}/`) ||
    /^(?:node:|koffi$|dockerode$|pg-native$|cpu-features$)/.test(id)
  );
}

/** The manifest without what only development needs, its paths those of the compiled files. */
function publishedManifest(imported: ReadonlySet<string>): Manifest {
  const { private: _, scripts: __, devDependencies: ___, allowScripts: ____, ...kept } = manifest;
  const exported = Object.entries(manifest.exports).map(([name, file]) => [
    name,
    { types: file.replace(/\.ts$/, '.d.ts'), default: compiled(file) },
  ]);
  return {
    ...kept,
    engines,
    bin: Object.fromEntries(Object.keys(manifest.bin).map((name) => [name, entryFile(name)])),
    exports: {
      ...Object.fromEntries(exported),
      './package.json': './package.json',
    } as Manifest['exports'],
    dependencies: Object.fromEntries(
      Object.entries(manifest.dependencies).filter(([name]) => imported.has(name)),
    ),
  };
}

function compiled(file: string): string {
  return file.replace(/\.ts$/, '.js');
}

function writeJson(file: string, content: object): void {
  writeFileSync(file, `${JSON.stringify(content, undefined, 2)}\n`);
}

export function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
}
