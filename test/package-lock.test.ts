import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  type LockFile,
  lockFileProblems,
  shrinkwrapOf,
  withoutEngines,
} from '../scripts/lock-file.ts';

const file = join(import.meta.dirname, '..', 'package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8')) as LockFile;

test('package-lock.json has every package of every platform, with its checksum and no host', () => {
  expect(lockFileProblems(lock)).toEqual([]);
});

test.each(['linux-x64', 'darwin-arm64', 'win32-x64'])(
  'package-lock.json has the tools for %s',
  (platform) => {
    const places = Object.keys(lock.packages);
    for (const tool of ['@biomejs/cli-', '@typescript/typescript-', '@oxlint/binding-']) {
      expect(places.some((place) => place.startsWith(`node_modules/${tool}${platform}`))).toBe(
        true,
      );
    }
  },
);

test('neither the project nor a package warns of the Node.js of the machine, which npm replaces', () => {
  const manifest = JSON.parse(readFileSync(join(file, '..', 'package.json'), 'utf8')) as object;
  expect(manifest).not.toHaveProperty('engines');
  const packages = { 'node_modules/a': { integrity: 'sha512-x', engines: { node: '>=24' } } };
  expect(lockFileProblems(withoutEngines({ packages }))).toEqual([]);
});

test('a package that is left out, has no checksum or names a host is found', () => {
  const entry = { integrity: 'sha512-x' };
  expect(
    lockFileProblems({
      packages: {
        '': { dependencies: { a: '1' } },
        'node_modules/a': { ...entry, optionalDependencies: { 'a-linux': '1', 'a-darwin': '1' } },
        'node_modules/a/node_modules/a-linux': {},
        'node_modules/a/node_modules/b': { ...entry, dependencies: { a: '1', c: '1' } },
        'node_modules/e': { ...entry, engines: { node: '>=24' } },
        'node_modules/d': { ...entry, resolved: 'https://registry.example/d.tgz' },
      },
    }),
  ).toEqual([
    'node_modules/a wants a-darwin, which is not listed',
    'node_modules/a/node_modules/a-linux has no checksum',
    'node_modules/a/node_modules/b wants c, which is not listed',
    'node_modules/e has engines',
    'node_modules/d names a host: https://registry.example/d.tgz',
  ]);
});

test('a published package installs what it was tested with, and none of the rest', () => {
  const entry = { integrity: 'sha512-x' };
  const packages = {
    '': { dependencies: { a: '1', tool: '1' } },
    'node_modules/a': { ...entry, dependencies: { b: '1', c: '1' } },
    'node_modules/a/node_modules/b': { ...entry, optionalDependencies: { slow: '1', c: '1' } },
    'node_modules/b': entry,
    'node_modules/c': entry,
    'node_modules/slow': entry,
    'node_modules/tool': entry,
  };
  const made = shrinkwrapOf({ packages }, { dependencies: { a: '1' } }, ['slow']).packages;
  expect(Object.keys(made)).toEqual([
    '',
    'node_modules/a',
    'node_modules/a/node_modules/b',
    'node_modules/c',
  ]);
});
