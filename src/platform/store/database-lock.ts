import { realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { takeFileLock } from './file-lock.ts';

/**
 * Keeps other hubs from the SQLite file of a URL; the command line may still use it. Undefined for a
 * database that several can share or no other process can see, and for a file in a folder that does not
 * exist: to open it fails anyway, for that reason. Throws StartupError.
 */
export async function lockDatabase(
  url: string,
  options: {
    readonly directory: string;
    readonly explain: (holder: string, file: string) => string;
  },
): Promise<Disposable | undefined> {
  const path = url.replace(/^sqlite:/, '');
  if (path === url || path === ':memory:') return undefined;
  const file = await canonicalFile(resolve(options.directory, path));
  if (file === undefined) return undefined;
  return takeFileLock(`${file}-lock`, (holder) => options.explain(holder, file));
}

/** One name for a file, whatever links lead to it. */
async function canonicalFile(file: string): Promise<string | undefined> {
  try {
    return await realpath(file);
  } catch {
    const folder = await realpath(dirname(file)).catch(() => undefined);
    return folder && join(folder, basename(file));
  }
}
