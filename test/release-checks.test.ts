import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chart } from '../scripts/helm.ts';
import { readJson } from '../scripts/program.ts';
import {
  changedMigrations,
  differingFiles,
  sumsOfFolder,
  versionProblems,
} from '../scripts/release-checks.ts';

const root = join(import.meta.dirname, '..');

test('the package, the chart and the changelog name the same version', () => {
  const versions = {
    version: String(readJson(join(root, 'package.json'))['version']),
    chart: readFileSync(join(chart, 'Chart.yaml'), 'utf8'),
    changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
  };
  expect(versionProblems(versions)).toEqual([]);
  expect(versionProblems({ ...versions, version: '9.9.9' })).toEqual([
    'version of Chart.yaml is not 9.9.9',
    'appVersion of Chart.yaml is not 9.9.9',
    'CHANGELOG.md begins with 0.1.0, not 9.9.9',
  ]);
});

test('a file that two builds made differently, or only one of them, is found', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hub-release-'));
  mkdirSync(join(folder, 'src'));
  writeFileSync(join(folder, 'src', 'a.js'), 'a');
  writeFileSync(join(folder, 'b.js'), 'b');
  const first = sumsOfFolder(folder);
  expect([...first.keys()]).toEqual(['b.js', 'src/a.js']);
  writeFileSync(join(folder, 'src', 'a.js'), 'other');
  writeFileSync(join(folder, 'c.js'), 'c');
  expect(differingFiles(first, sumsOfFolder(folder))).toEqual(['c.js', 'src/a.js']);
});

test('a migration stays as a release had it, and one that none had is found', () => {
  const released = readFileSync(join(root, 'fixtures/databases/SHA256SUMS'), 'utf8');
  const found = new Map(sumsOfFolder(join(root, 'src/platform/store/migrations')));
  expect(changedMigrations(released, found).changed).toEqual([]);
  found.set('0002-suspended-users.ts', 'other').set('9999-next.ts', 'next');
  found.delete('0001-initial/tables.ts');
  const { changed, unreleased } = changedMigrations(released, found);
  expect(changed).toEqual(['0001-initial/tables.ts', '0002-suspended-users.ts']);
  expect(unreleased).toContain('9999-next.ts');
});
