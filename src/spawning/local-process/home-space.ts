import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { HomeSpace } from '../../plugin/host/spawner.ts';

/**
 * What the file system of a folder tells of its space, or that of the nearest folder above it that is there. File
 * systems with quotas of projects tell of the quota (XFS, ext4).
 */
export async function homeSpaceOf(folder: string): Promise<HomeSpace | undefined> {
  try {
    const { bsize, blocks, bavail } = await statfs(folder);
    // What has no blocks at all, such as /proc, holds no homes.
    return blocks === 0 ? undefined : { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const parent = dirname(folder);
    return isMissing && parent !== folder ? homeSpaceOf(parent) : undefined;
  }
}
