import type { ContainerStats } from 'dockerode';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import type { ResourceUsage } from '../../plugin/host/spawner.ts';
import type { Engine } from './engine.ts';

interface Sample {
  readonly cpuNanoseconds: number;
  readonly atMs: number;
}

const parallelStats = 8;
const maxSamples = 10_000;

/** Measures containers by their cgroups, as the engine tells them; undefined for those it does not know. */
export function createContainerUsage(engine: Engine) {
  const samples = new Map<string, Sample>();
  const inTurn = createLimiter(parallelStats);

  async function measure(container: string): Promise<ResourceUsage | undefined> {
    const { stats, startedAt } = await engine.call(async (docker, abortSignal) => {
      const handle = docker.getContainer(container);
      const [current, info] = await Promise.all([
        handle.stats(oneShot(abortSignal)),
        handle.inspect({ abortSignal }),
      ]);
      return { stats: current, startedAt: Date.parse(info.State.StartedAt) };
    });
    const now: Sample = {
      cpuNanoseconds: stats.cpu_stats.cpu_usage.total_usage,
      atMs: performance.now(),
    };
    const uptimeSeconds = Math.max(0, (Date.parse(stats.read) - startedAt) / 1000);
    const before = samples.get(container);
    samples.set(container, now);
    const oldest = samples.keys().next().value;
    if (samples.size > maxSamples && oldest !== undefined) samples.delete(oldest);
    return {
      cpuCores: coresSince(before, now, uptimeSeconds),
      cpuSeconds: now.cpuNanoseconds / 1e9,
      memoryBytes: memoryOf(stats),
      uptimeSeconds,
      processes: stats.pids_stats?.current ?? 1,
    };
  }

  return (
    containers: readonly (string | undefined)[],
  ): Promise<readonly (ResourceUsage | undefined)[]> =>
    Promise.all(
      containers.map(async (container) =>
        container === undefined
          ? undefined
          : inTurn(() => measure(container)).catch(() => undefined),
      ),
    );
}

/** One figure at once, in place of two a second apart; the library's types know no signal here. */
function oneShot(abortSignal: AbortSignal): { stream: false; 'one-shot': true } {
  const options = { stream: false, 'one-shot': true, abortSignal } as const;
  return options;
}

/** Since the last measurement, or on average when it is the first. */
function coresSince(before: Sample | undefined, now: Sample, uptimeSeconds: number): number {
  const seconds = before === undefined ? uptimeSeconds : (now.atMs - before.atMs) / 1000;
  const nanoseconds = now.cpuNanoseconds - (before?.cpuNanoseconds ?? 0);
  return seconds > 0 ? Math.max(0, nanoseconds / 1e9 / seconds) : 0;
}

/** Without what the kernel keeps of files and gives up when memory is needed (cgroup v2, else v1). */
function memoryOf({ memory_stats: { usage = 0, stats } }: ContainerStats): number {
  const figures = stats as Readonly<Record<string, number>> | undefined;
  return Math.max(0, usage - (figures?.['inactive_file'] ?? figures?.['total_inactive_file'] ?? 0));
}
