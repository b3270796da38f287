import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, mkdir, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** What a listing tells of one file or folder. */
export interface Entry {
  readonly name: string;
  readonly isFolder: boolean;
  readonly bytes: number;
  readonly changedAt: Date;
}

/** A request that cannot be done; the message is for the person. */
export class FolderError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const largestText = 1024 * 1024;

/** A person's folder. Every path is one below it, and nothing leads out of it, not even a link. */
export function openFolder(root: string) {
  async function locate(path: string): Promise<string> {
    const target = resolve(root, `.${sep}${path}`);
    if (path.includes('\0') || !isInside(target, root))
      throw new FolderError(404, 'There is no such file.');
    const existing = await realpath(target).catch(() => undefined);
    const parent = existing ?? (await realpath(dirname(target)).catch(() => undefined));
    if (parent === undefined || !isInside(parent, await realpath(root))) {
      throw new FolderError(404, 'There is no such folder.');
    }
    return target;
  }

  async function list(path: string): Promise<Entry[]> {
    const folder = await locate(path);
    const names = await readdir(folder);
    const entries = await Promise.all(
      names
        .filter((name) => !name.startsWith('.'))
        .map(async (name) => {
          const facts = await stat(join(folder, name)).catch(() => lstat(join(folder, name)));
          return { name, isFolder: facts.isDirectory(), bytes: facts.size, changedAt: facts.mtime };
        }),
    );
    return entries.sort(
      (left, right) =>
        Number(right.isFolder) - Number(left.isFolder) || left.name.localeCompare(right.name),
    );
  }

  return {
    list,

    async isFolder(path: string): Promise<boolean> {
      const facts = await stat(await locate(path)).catch(() => undefined);
      if (facts === undefined) throw new FolderError(404, 'There is no such file.');
      return facts.isDirectory();
    },

    /** The text of a file, or undefined when it is too large or no text. */
    async readText(path: string): Promise<string | undefined> {
      const file = await locate(path);
      if ((await stat(file)).size > largestText) return undefined;
      try {
        return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
      } catch {
        return undefined;
      }
    },

    async download(path: string) {
      const file = await locate(path);
      return { bytes: (await stat(file)).size, stream: createReadStream(file) };
    },

    /** Writes a file whole: another one takes its place only when everything has arrived. */
    async write(path: string, content: Readable): Promise<void> {
      const file = await locate(path);
      requireName(basename(file));
      const draft = join(dirname(file), `.${basename(file).slice(0, 100)}.${process.pid}.part`);
      try {
        await pipeline(content, createWriteStream(draft, { flags: 'w', mode: 0o600 }));
        await rename(draft, file);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },

    async makeFolder(path: string): Promise<void> {
      const folder = await locate(path);
      requireName(basename(folder));
      await mkdir(folder);
    },

    async remove(path: string): Promise<void> {
      const target = await locate(path);
      if (relative(root, target) === '') throw new FolderError(400, 'This folder itself stays.');
      await rm(target, { recursive: true });
    },
  };
}

export type Folder = ReturnType<typeof openFolder>;

function isInside(path: string, root: string): boolean {
  return path === root || path.startsWith(root + sep);
}

function requireName(name: string): void {
  if (name === '' || name.startsWith('.') || Buffer.byteLength(name) > 200) {
    throw new FolderError(
      400,
      'Choose another name: not empty, not too long, without a dot in front.',
    );
  }
}
