import { chmod, chown, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runsAsRoot } from '../../spawning/processes/system-user.ts';
import { findMover, findMoverSync, findOperator } from './movable-path.ts';

const foreignUser = 65_534;

describe.runIf(runsAsRoot())('who may put something else in the place of a path', () => {
  let root = '';

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'hub-mover-')));
    const make = async (name: string, mode: number, owner = 0, group = 0) => {
      await mkdir(join(root, name));
      await chown(join(root, name), owner, group);
      await chmod(join(root, name), mode);
    };
    await make('own', 0o755);
    await make('theirs', 0o755, foreignUser, foreignUser);
    await make('all', 0o777);
    await make('sticky', 0o1777);
    await make('system', 0o775, 0, 4);
    await make('users', 0o775, 0, 1000);
    await writeFile(join(root, 'sticky', 'own'), '');
    await writeFile(join(root, 'sticky', 'theirs'), '');
    await chown(join(root, 'sticky', 'theirs'), foreignUser, foreignUser);
    await symlink('own', join(root, 'to-own'));
    await symlink(join(root, 'own', '..', 'theirs'), join(root, 'to-theirs'));
    await symlink('loop', join(root, 'loop'));
  });
  afterAll(() => rm(root, { recursive: true }));

  test.each([
    ['own', undefined],
    ['own/missing/deep', undefined],
    ['system/file', undefined],
    ['to-own/file', undefined],
    ['sticky/own', undefined],
    // Its folder is root's; what is in it is not.
    ['theirs', undefined],
    ['theirs/file', { path: 'theirs', userId: foreignUser }],
    ['own/../theirs/a/b', { path: 'theirs', userId: foreignUser }],
    ['to-theirs/file', { path: 'theirs', userId: foreignUser }],
    ['all/file', { path: 'all', userId: undefined }],
    ['users/file', { path: 'users', userId: undefined }],
    ['sticky/theirs', { path: 'sticky/theirs', userId: foreignUser }],
    ['sticky/missing', { path: 'sticky', userId: undefined, isVacant: true }],
    ['loop', { path: 'loop', userId: 0 }],
  ])('%s: %j', async (path, expected) => {
    const mover = expected && { isVacant: false, ...expected, path: join(root, expected.path) };
    expect(await findMover(join(root, path))).toEqual(mover);
    expect(findMoverSync(join(root, path))).toEqual(mover);
  });

  test('an account that is trusted is none of them', async () => {
    expect(await findMover(join(root, 'theirs', 'file'), [foreignUser])).toBeUndefined();
    expect(await findOperator(join(root, 'theirs', 'file'))).toEqual([foreignUser]);
  });

  test('nor is a group that is trusted, where nobody else may write', async () => {
    expect(await findMover(join(root, 'users', 'file'), [], [1000])).toBeUndefined();
    expect(await findMover(join(root, 'users', 'file'), [], [1001])).toBeDefined();
    expect(await findMover(join(root, 'all', 'file'), [], [0])).toBeDefined();
  });
});
