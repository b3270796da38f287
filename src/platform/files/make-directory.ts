import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a directory and those above it that are missing. Unlike `mkdir` with `recursive` it does not
 * try for ever where the file system answers ENOENT though the parent exists, as automounters do.
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  if (await isDirectory(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectory(parent, mode);
  try {
    await mkdir(path, { mode });
  } catch (thrown) {
    // Another process may have made it at the same moment.
    if (!(await isDirectory(path))) throw thrown;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}
