import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findClosedPlace } from './closed-path.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'closed-path-'));
  await chmod(directory, 0o755);
  await mkdir(join(directory, 'home'), { mode: 0o700 });
  await mkdir(join(directory, 'opt'), { mode: 0o755 });
  await writeFile(join(directory, 'home', 'program'), '', { mode: 0o755 });
  await writeFile(join(directory, 'opt', 'program'), '', { mode: 0o755 });
  await writeFile(join(directory, 'opt', 'script.js'), '', { mode: 0o644 });
  await writeFile(join(directory, 'opt', 'private'), '', { mode: 0o700 });
  await symlink(join(directory, 'home', 'program'), join(directory, 'opt', 'into-home'));
  await symlink(join(directory, 'opt', 'program'), join(directory, 'home', 'out-of-home'));
});
afterEach(() => rm(directory, { recursive: true }));

const foreignProcess = { userId: 65_000, groupIds: [65_000] };

test.each([
  ['home/program', { path: 'home', mode: 0o700 }],
  ['opt/into-home', { path: 'home', mode: 0o700 }],
  ['home/out-of-home', { path: 'home', mode: 0o700 }],
  ['opt/private', { path: 'opt/private', mode: 0o700 }],
  ['opt/program', undefined],
  ['opt/script.js', undefined],
  ['opt/nothing', undefined],
] as const)('what keeps others from %s is %o', async (file, expected) => {
  const place = expected && { ...expected, path: join(directory, expected.path) };
  expect(await findClosedPlace(join(directory, file), foreignProcess)).toEqual(place);
  expect(await findClosedPlace(join(directory, file), 'others')).toEqual(place);
});

test('a member of the group and root have their own ways in', async () => {
  const file = join(directory, 'home', 'program');
  const { gid } = await stat(file);
  expect(await findClosedPlace(file, { userId: 0, groupIds: [] })).toBeUndefined();
  await chmod(join(directory, 'home'), 0o710);
  const member = { userId: 65_000, groupIds: [65_000, gid] };
  expect(await findClosedPlace(file, member)).toBeUndefined();
  await chmod(join(directory, 'home'), 0o077);
  expect(await findClosedPlace(file, foreignProcess)).toBeUndefined();
  await chmod(join(directory, 'home'), 0o700);
});
