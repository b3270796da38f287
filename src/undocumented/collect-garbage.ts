import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Gives memory that is not in use back to the system, as V8 does by itself only when it runs short of it, and
 * with it the compiled code of the program: what runs next is several times as slow for some seconds. Stops
 * this thread for a tenth of a second or so.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: (options: object) => void = runInNewContext('gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

const checkMs = 2_000;
/** Share of the time in which a program that is quiet does something. */
const quietShare = 0.02;
/** A program that has been busy all this time since its start runs compiled code by then. */
const startMs = 15_000;
/** How long a program that has been busy must be quiet before it is taken to stay so. */
const longQuietMs = 5 * 60_000;
/** Less is not worth compiling everything again. */
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
 * Collects garbage once in the first quiet seconds after the start, whose code does not run again, and after
 * that when work made the heap grow and minutes have passed without any. Does not keep the process running.
 */
export function collectWhenQuiet(program: CollectedProgram = thisThread()): Disposable {
  let ageMs = 0;
  let quietMs = 0;
  let formerBytes: number | undefined;
  const timer = setInterval(() => {
    ageMs += checkMs;
    quietMs = program.busyShare() < quietShare ? quietMs + checkMs : 0;
    const isStart = formerBytes === undefined && ageMs <= startMs;
    if (quietMs < (isStart ? checkMs : longQuietMs)) return;
    if (!isStart && program.heapBytes() - (formerBytes ?? 0) < leastGrowthBytes) return;
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
