import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { mebibytes } from '../../platform/logging/mebibytes.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { SpawnerHost } from '../../plugin/host/spawner.ts';
import { measureUsage } from '../processes/process-usage.ts';

/** A server whose memory is limited. */
export interface GuardedServer {
  readonly pid: number;
  readonly limitBytes: number;
  /** Called at each poll that finds it over its limit. */
  readonly onExceeded: (reason: Text) => void;
}

/**
 * Polls the memory of servers that no cgroup holds and reports those over their limit.
 *
 * Resident memory of the whole tree, and not RLIMIT_AS: an address space limit breaks every runtime
 * that reserves more than it uses (Node.js, Java, Go), and it would hold for each process alone.
 * A sudden rise between two polls is not caught; that takes a control group.
 */
export function createMemoryGuard(options: {
  readonly servers: () => readonly GuardedServer[];
  readonly intervalMs: number;
  readonly log: SpawnerHost['log'];
}): Disposable {
  const { servers, intervalMs, log } = options;

  async function check(): Promise<void> {
    const guarded = servers();
    const usages = await measureUsage(guarded.map(({ pid }) => pid));
    for (const { pid, limitBytes, onExceeded } of guarded) {
      const { memoryBytes = 0 } = usages.get(pid) ?? {};
      if (memoryBytes <= limitBytes) continue;
      onExceeded(
        text`it uses ${mebibytes(memoryBytes)} of memory, its limit is ${mebibytes(limitBytes)}`,
      );
    }
  }

  return createPeriodic({
    intervalMs,
    work: check,
    onError: (error) => log.warn({ err: error }, 'could not measure the memory of servers'),
  });
}
