import process from 'node:process';
import { setFlagsFromString } from 'node:v8';

/** Options of V8, which takes them when a process starts and not later. */
export const v8Options = [
  /*
   * In MiB, for objects that are young. By default their part of the heap grows to 128 MiB under load, stays so,
   * and no longer fits the caches of the processor.
   */
  '--max-semi-space-size=8',
  /*
   * After some seconds without work V8 would give the compiled code back, so that each burst of requests started cold.
   */
  '--no-memory-reducer',
  /*
   * Objects of a kind that lived on during the start or a burst would be made among the old ones from then on. There,
   * one that is garbage still keeps all that it refers to, whole requests, until a full collection: with HTTP/2, a fifth
   * of the processor's time.
   */
  '--no-allocation-site-pretenuring',
];
/** By default glibc keeps memory that is not in use for each thread (mallopt(3), M_ARENA_MAX). */
export const arenas = { MALLOC_ARENA_MAX: '2' };

/**
 * Makes the process begin once more under settings that keep its memory small, with the same pid and arguments; returns
 * where that is done, or an operator chose such settings by options of Node.js. To be called first thing.
 */
export function restartWithMemorySettings(
  environment: Readonly<Record<string, string | undefined>>,
): void {
  const { platform, execPath, execArgv, argv, execve } = process;
  const options = [...execArgv, environment['NODE_OPTIONS'] ?? ''].join(' ');
  if (/--(?:max[-_]semi[-_]space[-_]size|inspect)/.test(options)) return;
  // A parent that talks with the process, such as `node --watch`, would lose it, as the process its passed sockets.
  if (platform === 'win32' || execve === undefined || process.connected) return;
  if (environment['LISTEN_FDS'] !== undefined) return;
  execve(execPath, [execPath, ...v8Options, ...execArgv, ...argv.slice(1)], {
    ...arenas,
    ...environment,
  });
}

/**
 * Has old objects collected when the heap has grown by 30 % of what was in use. V8 would let it grow to a multiple, and
 * keep what it got: 50 MiB more after a burst of requests. To be called when the program is loaded, because the start
 * itself would have to be collected several times. Does nothing where an operator chose memory settings.
 */
export function limitHeapGrowth(): void {
  if (!v8Options.every((option) => process.execArgv.includes(option))) return;
  setFlagsFromString('--heap-growing-percent=30');
}
