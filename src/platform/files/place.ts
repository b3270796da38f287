import { closeSync, constants, fstatSync, lstatSync, openSync, type Stats } from 'node:fs';
import { platform } from 'node:os';

/** Linux, open(2): a descriptor that stands for a place and opens nothing. */
const placeOnly = 0o10_000_000;

/**
 * Works with what is at a path now, whatever is put there meanwhile: `place` is another path, of a descriptor, that leads
 * to it as long as the work lasts. A link is taken for itself; for a folder, which may be reached by one, it is
 * followed. On other systems than Linux it is the path itself.
 */
export function withPlace<Result>(
  path: string,
  kind: 'folder' | 'any',
  work: (place: string, stats: Stats) => Result,
): Result {
  if (platform() !== 'linux') return work(path, lstatSync(path));
  const flags = kind === 'folder' ? constants.O_DIRECTORY : constants.O_NOFOLLOW;
  const descriptor = openSync(path, placeOnly | flags);
  try {
    return work(`/proc/self/fd/${descriptor}`, fstatSync(descriptor));
  } finally {
    closeSync(descriptor);
  }
}
