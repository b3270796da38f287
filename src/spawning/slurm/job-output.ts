import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { geteuid } from 'node:process';
import { createLineSplitter } from '../processes/output-lines.ts';

/** Reads what a job writes to its output file, where the hub sees that file. */
export interface JobOutput extends AsyncDisposable {
  /** The lines since the last call; none while the file cannot be seen. Never throws. */
  readNew(): Promise<readonly string[]>;
  /** Whether the file has been seen at all. */
  readonly isSeen: boolean;
}

const chunkBytes = 64 * 1024;
/** A flood is read no faster than this at one call; what lies between is left out. */
const maxBytes = 512 * 1024;

/**
 * The file belongs to the user of the job, who may put anything in its place: it is opened without
 * following a link, and read only while it is that user's own.
 */
export function createJobOutput(options: {
  readonly file: string;
  /** Account that owns the job; that of the hub when undefined. */
  readonly userId: number | undefined;
  /** What shows as `[secret]`. */
  readonly secrets: readonly string[];
}): JobOutput {
  const { file, userId = geteuid?.(), secrets } = options;
  const splitter = createLineSplitter();
  let handle: FileHandle | undefined;
  let offset = 0;
  /** Readings follow one another: two at once would open the file twice and tell the same lines. */
  let last: Promise<readonly string[]> = Promise.resolve([]);

  async function openFile(): Promise<FileHandle | undefined> {
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    const opened = await open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const found = await opened.stat();
    if (found.isFile() && (userId === undefined || found.uid === userId)) return opened;
    await opened.close();
    return undefined;
  }

  async function readOn(): Promise<readonly string[]> {
    try {
      handle ??= await openFile();
      if (handle === undefined) return [];
      const { size } = await handle.stat();
      if (size - offset > maxBytes) offset = size - maxBytes;
      const lines: string[] = [];
      while (offset < size) {
        const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, size - offset));
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
        if (bytesRead === 0) break;
        offset += bytesRead;
        lines.push(...splitter.push(buffer.subarray(0, bytesRead)));
      }
      return lines.map(mask);
    } catch {
      // Not written yet, or on a file system that the hub does not see.
      return [];
    }
  }

  const mask = (line: string) =>
    secrets.reduce((text, secret) => text.replaceAll(secret, '[secret]'), line);

  return {
    get isSeen() {
      return handle !== undefined;
    },

    readNew() {
      last = last.then(readOn);
      return last;
    },

    async [Symbol.asyncDispose]() {
      await last;
      await handle?.close().catch(() => undefined);
    },
  };
}
