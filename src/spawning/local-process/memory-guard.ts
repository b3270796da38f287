import { measureUsage } from '../../processes/process-usage.ts';

/** A server whose memory is limited. */
export interface GuardedServer {
  readonly pid: number;
  readonly limitBytes: number;
  /** Called at each look that finds it over its limit. */
  readonly onExceeded: (reason: string) => void;
}

/**
 * Looks at the memory of servers again and again and tells of those over their limit.
 *
 * Resident memory of the whole tree, and not RLIMIT_AS: an address space limit breaks every runtime
 * that reserves more than it uses (Node.js, Java, Go), and it would hold for each process alone.
 * A sudden rise between two looks is not caught; that takes a control group.
 */
export function createMemoryGuard(options: {
  readonly servers: () => readonly GuardedServer[];
  readonly intervalMs: number;
}): Disposable {
  const { servers, intervalMs } = options;

  async function look(): Promise<void> {
    const guarded = servers();
    const usages = await measureUsage(guarded.map(({ pid }) => pid));
    for (const { pid, limitBytes, onExceeded } of guarded) {
      const { memoryBytes = 0 } = usages.get(pid) ?? {};
      if (memoryBytes <= limitBytes) continue;
      onExceeded(
        `it uses ${mebibytes(memoryBytes)} of memory, its limit is ${mebibytes(limitBytes)}`,
      );
    }
  }

  const timer = setInterval(() => void look(), intervalMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}
