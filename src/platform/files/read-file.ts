import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

export type ReadFile =
  | { readonly body: Buffer; readonly problem?: undefined }
  | { readonly problem: string };

/** Reads a regular file of at most that size, in bytes; of anything else it says why not. Never waits for a pipe. */
export async function readBoundedFile(path: string, limitBytes: number): Promise<ReadFile> {
  try {
    // Without it, opening a named pipe waits for someone to write to it.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (stats.isDirectory()) return { problem: 'is a folder, not a file' };
    if (!stats.isFile()) return { problem: 'is no regular file' };
    const tooLarge = `is larger than ${limitBytes / 1024} KiB`;
    if (stats.size > limitBytes) return { problem: tooLarge };
    // One that grows meanwhile is read no further.
    const buffer = Buffer.alloc(limitBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length);
      length += bytesRead;
      if (length > limitBytes) return { problem: tooLarge };
      if (bytesRead === 0) break;
    }
    if (length === 0) return { problem: 'is empty' };
    return { body: Buffer.from(buffer.subarray(0, length)) };
  } catch (error) {
    return { problem: `cannot be read: ${reasonOf(error)}` };
  }
}

/** The text of a file in UTF-8; undefined for anything else. */
export function readText(body: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Says why a file could not be read, in the words of the operating system. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  const words: Record<string, string> = {
    ENOENT: 'there is no such file',
    EACCES: 'permission denied',
    EISDIR: 'it is a folder',
    ENOTDIR: 'a part of its path is not a folder',
  };
  return words[code ?? ''] ?? code ?? 'unknown reason';
}
