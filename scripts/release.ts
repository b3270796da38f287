/**
 * Makes what a release consists of, in `release/`: the packages for npm and Debian, `hub-singleuser` as one file, the chart, a list of what is in the hub
 * (CycloneDX) and `SHA256SUMS`. Builds twice, and refuses what differs. Run with `npm run release`.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeDebianPackage } from './debian-package.ts';
import { chart, helm } from './helm.ts';
import { readJson, singleuserFile } from './program.ts';
import {
  changedMigrations,
  differingFiles,
  sumsOfFolder,
  versionProblems,
} from './release-checks.ts';

const root = join(import.meta.dirname, '..');
const release = join(root, 'release');
const dist = join(root, 'dist');
const built = [dist, join(root, 'dist-client')];

const version = String(readJson(join(root, 'package.json'))['version']);
const problems = versionProblems({
  version,
  chart: readFileSync(join(chart, 'Chart.yaml'), 'utf8'),
  changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
});
const { changed, unreleased } = changedMigrations(
  readFileSync(join(root, 'fixtures/databases/SHA256SUMS'), 'utf8'),
  sumsOfFolder(join(root, 'src/platform/store/migrations')),
);
problems.push(
  ...changed.map((file) => `the migration ${file} was changed after a release`),
  ...unreleased.map(
    (file) => `the migration ${file} is not in fixtures/databases/SHA256SUMS: freeze the schema`,
  ),
);
if (problems.length > 0) throw new Error(problems.join('\n'));

const differing = differingFiles(build(), build());
if (differing.length > 0) throw new Error(`Two builds differ: ${differing.join(', ')}`);

for (const folder of built) npm(['pack', folder, '--silent', '--pack-destination', release]);
copyFileSync(join(dist, singleuserFile), join(release, singleuserFile));
await helm('package', chart, '--destination', release);
const bom = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
writeFileSync(join(release, 'sbom.cdx.json'), npm(bom, dist));
const sums = [...sumsOfFolder(release)].map(([file, sum]) => `${sum}  ${file}\n`);
writeFileSync(join(release, 'SHA256SUMS'), sums.join(''));
console.log(sums.join(''));

/** Sums of what a build makes, with the package for Debian. */
function build(): ReadonlyMap<string, string> {
  npm(['run', '--silent', 'build']);
  rmSync(release, { recursive: true, force: true });
  mkdirSync(release);
  writeDebianPackage({ dist, folder: release, version });
  return new Map(
    [...built, release].flatMap((folder) =>
      [...sumsOfFolder(folder)].map(([file, sum]) => [join(folder, file), sum] as const),
    ),
  );
}

function npm(args: readonly string[], cwd = root): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}
