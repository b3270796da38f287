import type { Status } from 'pidusage';
import { collectTrees, listProcesses } from '../../platform/process-table/process-table.ts';
import type { Cgroups } from './cgroup.ts';
import type { ProcessView } from './process-view.ts';

/** What a process and everything it started use of the machine. */
export interface ProcessUsage {
  /** Cores in use since the last measurement, 1 is one core. */
  readonly cpuCores: number;
  /** As the kernel counts it for a cgroup. */
  readonly cpuSeconds?: number | undefined;
  /** Resident memory; pages that several processes share count for each. */
  readonly memoryBytes: number;
  /** Since the leader started. */
  readonly uptimeSeconds: number;
  readonly processes: number;
}

/**
 * Measures several process trees with one read of the process table. A tree that is gone is missing
 * from the result. Never throws; CPU figures of a process begin with its second measurement.
 */
export async function measureUsage(
  leaders: readonly number[],
  /** Further processes of a leader, with what they started. */
  others: ReadonlyMap<number, readonly number[]> = new Map(),
): Promise<ReadonlyMap<number, ProcessUsage>> {
  if (leaders.length === 0) return new Map();
  try {
    const all = [...leaders, ...[...others.values()].flat()];
    const found = collectTrees(await listProcesses(), all);
    const trees = new Map(
      leaders.map((leader) => {
        const pids = [leader, ...(others.get(leader) ?? [])].flatMap((pid) => found.get(pid) ?? []);
        return [leader, [...new Set(pids)]];
      }),
    );
    const figures = await readFigures([...new Set([...trees.values()].flat())]);
    return new Map(
      [...trees].flatMap(([leader, pids]) => {
        const usage = sumFigures(leader, pids, figures);
        return usage === undefined ? [] : [[leader, usage] as const];
      }),
    );
  } catch {
    // Figures are for display only: without them the hub does the same.
    return new Map();
  }
}

type Figures = Status;

async function readFigures(pids: readonly number[]): Promise<ReadonlyMap<number, Figures>> {
  if (pids.length === 0) return new Map();
  const { default: pidusage } = await import('pidusage');
  // The types do not say it, but a process that ended in between has no figures.
  const figures: Record<string, Figures | null | undefined> = await pidusage([...pids]);
  return new Map(
    Object.entries(figures).flatMap(([pid, figure]) => (figure ? [[Number(pid), figure]] : [])),
  );
}

function sumFigures(
  leader: number,
  pids: readonly number[],
  figures: ReadonlyMap<number, Figures>,
): ProcessUsage | undefined {
  const known = pids.flatMap((pid) => figures.get(pid) ?? []);
  if (known.length === 0) return undefined;
  const oldest = figures.get(leader)?.elapsed ?? Math.max(...known.map((figure) => figure.elapsed));
  return {
    cpuCores: known.reduce((sum, figure) => sum + figure.cpu, 0) / 100,
    memoryBytes: known.reduce((sum, figure) => sum + figure.memory, 0),
    uptimeSeconds: Math.round(oldest / 1000),
    processes: known.length,
  };
}

/** The same for servers, with what has left the tree of its leader and carries its tag, or is in its cgroup. */
export async function measureServers(
  servers: readonly { readonly pid: number; readonly tag: string }[],
  { view, cgroups }: { readonly view: ProcessView; readonly cgroups: Cgroups },
): Promise<ReadonlyMap<number, ProcessUsage>> {
  // At once, so that all without a cgroup share one look.
  const others = await Promise.all(
    servers.map(async ({ pid, tag }) => {
      const members = cgroups.members(tag);
      return [pid, members.length > 0 ? members : await view.taggedWith(tag)] as const;
    }),
  );
  const usages = await measureUsage(
    servers.map(({ pid }) => pid),
    new Map(others),
  );
  return new Map(
    servers.flatMap(({ pid, tag }) => {
      const usage = usages.get(pid);
      return usage === undefined ? [] : [[pid, { ...usage, cpuSeconds: cgroups.cpuSeconds(tag) }]];
    }),
  );
}
