import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import type { Text } from '../../platform/texts/text.ts';
import type { CgroupEvents, CgroupLimits, Cgroups } from '../processes/cgroup.ts';
import { outOfMemory } from '../spawner-texts.ts';

/** A server that the kernel holds to limits. */
export interface LimitedServer {
  readonly tag: string;
  readonly limits: CgroupLimits;
  /** Events that were told already. */
  reported: CgroupEvents;
  /** When it last ran out of memory (monotonic); undefined when it never did. */
  lastOomMs: number | undefined;
  readonly onEvent: (message: string) => void;
}

const none: CgroupEvents = { oomKills: 0, refusedForks: 0 };
/** A program that starts others may take this long to end after the kernel has ended one of them. */
const oomBlameMs = 10_000;

export const noEvents = { reported: none, lastOomMs: undefined };

/** Tells when servers meet their limits and go on. */
export function createLimitEvents(options: {
  readonly servers: () => readonly LimitedServer[];
  readonly cgroups: Pick<Cgroups, 'events'>;
  readonly intervalMs: number;
  readonly monotonicMs: () => number;
}): Disposable {
  const { cgroups, monotonicMs } = options;
  return createPeriodic({
    intervalMs: options.intervalMs,
    async work() {
      for (const server of options.servers()) {
        noteEvents(server, cgroups.events(server.tag), monotonicMs());
      }
    },
    onError: () => undefined,
  });
}

function noteEvents(server: LimitedServer, events: CgroupEvents | undefined, nowMs: number): void {
  if (events === undefined) return;
  const { reported, limits } = server;
  server.reported = events;
  if (events.oomKills > reported.oomKills) {
    server.lastOomMs = nowMs;
    server.onEvent(`a process of the server was ended: ${outOfMemory(limits.memoryBytes)}`);
  }
  if (events.refusedForks > reported.refusedForks) {
    server.onEvent(`the server could not start another process: its limit is ${limits.processes}`);
  }
}

/** Why a server has ended, by what the kernel counted; undefined when its limits are not the reason. */
export function reasonOfEnd(
  server: Pick<LimitedServer, 'reported' | 'lastOomMs' | 'limits'>,
  exit: { readonly code: number | null; readonly events: CgroupEvents | undefined },
  nowMs: number,
): Text | undefined {
  if (exit.code === 0 || server.limits.memoryBytes === undefined) return undefined;
  const isNew = (exit.events?.oomKills ?? 0) > server.reported.oomKills;
  const isRecent = server.lastOomMs !== undefined && nowMs - server.lastOomMs < oomBlameMs;
  return isNew || isRecent ? outOfMemory(server.limits.memoryBytes) : undefined;
}
