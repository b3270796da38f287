/**
 * Builds what is published: `dist/`, the bundled program with its declarations and documents, and
 * `dist-client/`, the client library as a package of its own. Run with `npm run build`; an argument names another folder
 * than the project's for both.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import process from 'node:process';
import { bundleClient, bundleProgram, readJson } from './program.ts';

const root = join(import.meta.dirname, '..');
const target = resolve(process.argv[2] ?? root);
const dist = join(target, 'dist');
const client = join(target, 'dist-client');

for (const folder of [dist, client]) rmSync(folder, { recursive: true, force: true });
declareTypes();
finish(dist, await bundleProgram(dist), 'hub.md', ['SECURITY.md', 'hub.schema.json']);
for (const file of declarationsBehind(join(dist, 'src/client/client.d.ts'))) {
  cpSync(file, join(client, relative(dist, file)));
}
finish(client, await bundleClient(client), 'client.md', []);

/** Adds what goes out with every package. */
function finish(
  folder: string,
  packages: ReadonlySet<string>,
  readme: string,
  files: readonly string[],
): void {
  writeFileSync(join(folder, 'THIRD-PARTY-LICENSES.md'), licensesOf(packages));
  copyFileSync(join(root, 'deploy/npm', readme), join(folder, 'README.md'));
  for (const file of ['CHANGELOG.md', 'LICENSE', ...files])
    copyFileSync(join(root, file), join(folder, file));
}

/** A declaration, and those that it imports. */
function declarationsBehind(file: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/ from '(\.[^']+)'/g)) {
    declarationsBehind(join(dirname(file), path.replace(/\.[jt]s$/, '.d.ts')), found);
  }
  return found;
}

function declareTypes(): void {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const args = ['-p', 'tsconfig.build.json', '--outDir', dist];
  const { status } = spawnSync(process.execPath, [compiler, ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
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
