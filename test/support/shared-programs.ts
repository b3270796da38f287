import { constants } from 'node:fs';
import { chmod, copyFile, link, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { projectDirectory } from './services.ts';

/** Programs that every account of the machine can run, wherever the clone stands. */
export interface SharedPrograms extends AsyncDisposable {
  /** Node.js as it runs the tests. */
  readonly node: string;
  /** The command that runs a program of `fixtures/apps`. */
  app(name: string, ...args: string[]): string[];
}

/** Puts Node.js and programs of `fixtures/apps` into a folder of their own, open to all. */
export async function sharePrograms(...names: string[]): Promise<SharedPrograms> {
  const directory = await mkdtemp(join(tmpdir(), 'hub-shared-'));
  await chmod(directory, 0o755);
  const node = join(directory, 'node');
  // A link costs nothing, but not every file system can be linked from.
  await link(process.execPath, node).catch(() =>
    copyFile(process.execPath, node, constants.COPYFILE_FICLONE),
  );
  for (const name of names) {
    const file = join(projectDirectory, 'fixtures', 'apps', name);
    await copyFile(file, join(directory, basename(file)));
    await chmod(join(directory, basename(file)), 0o644);
  }
  return {
    node,
    app: (name, ...args) => [node, join(directory, name), ...args],
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
