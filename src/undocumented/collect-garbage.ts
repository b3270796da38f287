import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Gives memory that is not in use back to the system, as V8 does by itself only when it runs short of it.
 * Stops this thread for a tenth of a second or so.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: (options: object) => void = runInNewContext('gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

const checkMs = 2_000;
/** Share of the time in which a program that is quiet does something. */
const quietShare = 0.02;
/** Less is not worth the pause. */
const leastGrowthBytes = 32 * 1024 * 1024;

/** What the collector knows of the program and does to it. */
export interface CollectedProgram {
  /** Share of the time in which the event loop was busy since the last call, between 0 and 1. */
  busyShare(): number;
  /** Bytes that the heap takes up, in use or not. */
  heapBytes(): number;
  collect(): void;
}

/**
 * Collects garbage in the first quiet seconds after the start or after work that made the heap grow, when
 * the pause delays next to nobody. Does not keep the process running.
 */
export function collectWhenQuiet(program: CollectedProgram = thisThread()): Disposable {
  let formerBytes = 0;
  const timer = setInterval(() => {
    const isQuiet = program.busyShare() < quietShare;
    if (!isQuiet || program.heapBytes() - formerBytes < leastGrowthBytes) return;
    program.collect();
    formerBytes = program.heapBytes();
  }, checkMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function thisThread(): CollectedProgram {
  let last = performance.eventLoopUtilization();
  return {
    busyShare() {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
    heapBytes: () => getHeapStatistics().total_heap_size,
    collect: collectGarbage,
  };
}
