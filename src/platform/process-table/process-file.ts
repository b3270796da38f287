import { closeSync, openSync, readSync } from 'node:fs';

let buffer = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * Reads a file under /proc. What it returns is overwritten by the next call; throws where the file cannot
 * be read. These files tell no size, so `readFileSync` would allocate 64 KiB for each of some thousand.
 */
export function readProcessFile(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    for (let length = 0; ; ) {
      if (length === buffer.length) buffer = Buffer.concat([buffer], 2 * length);
      const count = readSync(file, buffer, length, buffer.length - length, null);
      if (count === 0) return buffer.subarray(0, length);
      length += count;
    }
  } finally {
    closeSync(file);
  }
}
