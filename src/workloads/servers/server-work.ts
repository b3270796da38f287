import type { ResourceUsage } from '../../plugin/host/spawner.ts';

/** Whether servers work though nobody looks on. */
export interface ServerWork {
  /** Whether it is known how much a server works. */
  isMeasured(serverId: string): boolean;
  /** What those of the running servers use whose spawner says so. */
  take(
    running: readonly string[],
    usages: ReadonlyMap<string, Pick<ResourceUsage, 'cpuCores'>>,
  ): void;
}

/** With one measurement in ten seconds, a minute: what comes up for a moment is no work. */
const samplesKept = 6;

/** `onWork` is called with each server that uses so many cores on average; with 0 of them nothing is known of any. */
export function createServerWork(options: {
  readonly idleCores: number;
  readonly onWork: (serverId: string) => void;
}): ServerWork {
  const { idleCores, onWork } = options;
  let samples = new Map<string, readonly number[]>();

  return {
    isMeasured: (serverId) => samples.has(serverId),
    take(running, usages) {
      if (idleCores === 0) return;
      const before = samples;
      samples = new Map();
      for (const id of running) {
        const now = usages.get(id)?.cpuCores;
        // An engine that does not answer for once has forgotten nothing.
        const known = [...(before.get(id) ?? []), ...(now === undefined ? [] : [now])];
        if (known.length === 0) continue;
        const kept = known.slice(-samplesKept);
        samples.set(id, kept);
        const cores = kept.reduce((sum, each) => sum + each, 0) / kept.length;
        if (now !== undefined && cores >= idleCores) onWork(id);
      }
    },
  };
}
