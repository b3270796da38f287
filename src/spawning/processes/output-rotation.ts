import { fstatSync, ftruncateSync, readSync, writeSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

export interface RotationOptions {
  /** The file the program writes to, opened for reading and appending. */
  readonly handle: FileHandle;
  readonly file: string;
  /** Up to where the hub has read the file. */
  readonly offset: number;
  readonly maxFileBytes: number;
  /** How many old files are kept, `file.1` being the youngest. */
  readonly oldFiles: number;
}

const chunkBytes = 256 * 1024;
/** What is still copied when the file has grown during the copy; of a flood, only its end. */
const maxLateBytes = 1024 * 1024;
const maxLateReads = 4;

/** What the program wrote while its file was moved away. */
export interface LateOutput {
  readonly bytes: Uint8Array;
  /** How many bytes before it were dropped, because the program writes faster than they are read. */
  readonly droppedBytes: number;
}

/**
 * Moves the content of an output file to `file.1` and empties it; returns what was written to it
 * after `offset`. The file itself stays, because the program holds it open and appends to it.
 *
 * What a program writes between the last read and the truncation is lost: both are synchronous and
 * next to each other, so that is microseconds, and only a flood notices.
 */
export async function rotateOutputFile(options: RotationOptions): Promise<LateOutput> {
  const { handle, file, offset, maxFileBytes, oldFiles } = options;
  if (oldFiles === 0) return emptyFile(handle, offset, undefined);
  const partial = `${file}.partial`;
  let copy: FileHandle | undefined;
  try {
    copy = await open(partial, 'w', 0o600);
    const isFlood = offset > 2 * maxFileBytes;
    await copyRange(handle, copy, isFlood ? offset - maxFileBytes : 0, offset);
    const late = emptyFile(handle, offset, copy);
    await shiftOldFiles(file, oldFiles);
    await rename(partial, `${file}.1`);
    return late;
  } catch {
    // A full disk is not a reason to let the file grow further: better without the old output.
    await rm(partial, { force: true });
    return emptyFile(handle, offset, undefined);
  } finally {
    await copy?.close();
  }
}

async function copyRange(
  from: FileHandle,
  to: FileHandle,
  start: number,
  end: number,
): Promise<void> {
  const buffer = Buffer.alloc(chunkBytes);
  for (let position = start; position < end; ) {
    const { bytesRead } = await from.read(
      buffer,
      0,
      Math.min(chunkBytes, end - position),
      position,
    );
    if (bytesRead === 0) return;
    await to.write(buffer, 0, bytesRead);
    position += bytesRead;
  }
}

function emptyFile(handle: FileHandle, offset: number, copy: FileHandle | undefined): LateOutput {
  const late: Buffer[] = [];
  let droppedBytes = 0;
  let position = offset;
  for (let reads = 0; reads < maxLateReads; reads += 1) {
    const { size } = fstatSync(handle.fd);
    if (size <= position) break;
    const start = Math.max(position, size - maxLateBytes);
    droppedBytes += start - position;
    const bytes = Buffer.alloc(size - start);
    late.push(bytes.subarray(0, readSync(handle.fd, bytes, 0, bytes.length, start)));
    position = size;
  }
  ftruncateSync(handle.fd, 0);
  const all = Buffer.concat(late);
  const bytes = all.subarray(-maxLateBytes);
  if (copy !== undefined) writeSync(copy.fd, bytes);
  return { bytes, droppedBytes: droppedBytes + all.length - bytes.length };
}

async function shiftOldFiles(file: string, oldFiles: number): Promise<void> {
  for (let age = oldFiles - 1; age >= 1; age -= 1) {
    // The younger ones do not exist yet in the first rotations.
    await rename(`${file}.${age}`, `${file}.${age + 1}`).catch(() => undefined);
  }
}
