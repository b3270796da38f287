import { createHash } from 'node:crypto';
import { globSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files that stand for one release. */
interface Versions {
  readonly version: string;
  /** `Chart.yaml`. */
  readonly chart: string;
  /** `CHANGELOG.md`. */
  readonly changelog: string;
}

/** Where another version stands than in `package.json`, a sentence for each. */
export function versionProblems({ version, chart, changelog }: Versions): string[] {
  const wrong = ['version', 'appVersion'].filter(
    (name) => new RegExp(`^${name}: "?([^"\\s]+)`, 'm').exec(chart)?.[1] !== version,
  );
  const [, latest] = /^## .*?(\d+\.\d+\.\d+)/m.exec(changelog) ?? [];
  return [
    ...wrong.map((name) => `${name} of Chart.yaml is not ${version}`),
    ...(latest === version ? [] : [`CHANGELOG.md begins with ${latest}, not ${version}`]),
  ];
}

/**
 * Names of migrations that are not as a release had them, and of those that are in none yet, by sums as sha256sum writes
 * them.
 */
export function changedMigrations(
  released: string,
  found: ReadonlyMap<string, string>,
): { readonly changed: string[]; readonly unreleased: string[] } {
  const sums = new Map(
    released.split('\n').map((line) => [line.slice(66), line.slice(0, 64)] as const),
  );
  sums.delete('');
  return {
    changed: [...sums.keys()].filter((file) => found.get(file) !== sums.get(file)),
    unreleased: [...found.keys()].filter((file) => !sums.has(file)),
  };
}

/** SHA-256 sums in hex of all files in a folder, by their paths in it, in order. */
export function sumsOfFolder(folder: string): ReadonlyMap<string, string> {
  const files = globSync('**/*', { cwd: folder, withFileTypes: true }).flatMap((file) =>
    file.isFile() ? [join(file.parentPath, file.name).slice(folder.length + 1)] : [],
  );
  return new Map(
    files.toSorted().map((file) => [
      file,
      createHash('sha256')
        .update(readFileSync(join(folder, file)))
        .digest('hex'),
    ]),
  );
}

/** Of all files in a folder, in bytes. */
export function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((file) => lstatSync(join(file.parentPath, file.name)).size)
    .reduce((sum, size) => sum + size, 0);
}

/** Files that are not the same in both, by their sums. */
export function differingFiles(
  first: ReadonlyMap<string, string>,
  second: ReadonlyMap<string, string>,
): string[] {
  const files = new Set([...first.keys(), ...second.keys()]);
  return [...files].filter((file) => first.get(file) !== second.get(file)).toSorted();
}
