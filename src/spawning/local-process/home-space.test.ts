import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { homeSpaceOf } from './home-space.ts';

test('the space of a home is that of its file system, also of one that is still to be made', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'home-'));
  const { bsize, blocks } = await statfs(folder);
  const space = { totalBytes: bsize * blocks, freeBytes: expect.any(Number) };
  expect(await homeSpaceOf(folder)).toEqual(space);
  expect(await homeSpaceOf(join(folder, 'homes/ann'))).toEqual(space);
  await rm(folder, { recursive: true });
});

test('a file system without blocks, and a path that leads nowhere, tell nothing', async () => {
  expect(await homeSpaceOf('/proc/self')).toBeUndefined();
  expect(await homeSpaceOf('/dev/null/home')).toBeUndefined();
});
