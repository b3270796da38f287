/**
 * Builds what is published: `dist/`, the bundled program with its declarations and documents. Run with
 * `npm run build`.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleProgram, readJson } from './program.ts';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

rmSync(dist, { recursive: true, force: true });
declareTypes();
writeFileSync(join(dist, 'THIRD-PARTY-LICENSES.md'), licensesOf(await bundleProgram(dist)));
for (const file of ['README.md', 'CHANGELOG.md', 'LICENSE', 'SECURITY.md', 'hub.schema.json']) {
  copyFileSync(join(root, file), join(dist, file));
}

function declareTypes(): void {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
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
