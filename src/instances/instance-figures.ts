import { availableParallelism, loadavg } from 'node:os';
import { cpuUsage, memoryUsage } from 'node:process';
import { monotonicMs } from '../concurrency/monotonic-clock.ts';

/** What an instance uses, and how busy its machine is. */
export interface InstanceFigures {
  /** Resident memory of the process. */
  readonly memoryBytes: number;
  /** Cores in use by the process since it was asked last; 1 is one core. */
  readonly cpuCores: number;
  /** Processes that ran or waited for a core of the machine, over the last minute. */
  readonly loadAverage: number;
  readonly machineCores: number;
}

/** Spans shorter than this give the figure of the one before. */
const leastSpanMs = 1_000;

/** Measures the process it runs in. */
export function createFiguresReader(): () => InstanceFigures {
  let usedUs = 0;
  let atMs = 0;
  let cpuCores = 0;
  return () => {
    const nowMs = monotonicMs();
    if (nowMs - atMs >= leastSpanMs) {
      const { user, system } = cpuUsage();
      cpuCores = (user + system - usedUs) / 1000 / (nowMs - atMs);
      usedUs = user + system;
      atMs = nowMs;
    }
    const [loadAverage = 0] = loadavg();
    const machineCores = availableParallelism();
    return { memoryBytes: memoryUsage.rss(), cpuCores, loadAverage, machineCores };
  };
}
