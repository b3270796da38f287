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

interface MeasuredTree {
  readonly usage: ProcessUsage;
  readonly pids: readonly number[];
}

/**
 * Measures several process trees with one read of the process table. A tree that is gone is missing
 * from the result. Never throws; CPU figures of a process begin with its second measurement.
 */
export async function measureUsage(
  leaders: readonly number[],
): Promise<ReadonlyMap<number, ProcessUsage>> {
  const trees = await measureTrees(leaders);
  return new Map([...trees].map(([leader, { usage }]) => [leader, usage]));
}

async function measureTrees(
  leaders: readonly number[],
  /** Further processes of a leader, with what they started. */
  others: ReadonlyMap<number, readonly number[]> = new Map(),
): Promise<ReadonlyMap<number, MeasuredTree>> {
  if (leaders.length === 0) return new Map();
  try {
    const all = [...leaders, ...[...others.values()].flat()];
    const found = collectTrees(await listProcesses(), all);
    const trees = leaders.map((leader) => {
      const pids = [leader, ...(others.get(leader) ?? [])].flatMap((pid) => found.get(pid) ?? []);
      return [leader, [...new Set(pids)]] as const;
    });
    const figures = await readFigures([...new Set(trees.flatMap(([, pids]) => pids))]);
    return new Map(
      trees.flatMap(([leader, pids]) => {
        const usage = sumFigures(leader, pids, figures);
        return usage === undefined ? [] : [[leader, { usage, pids }] as const];
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

/** Measures servers, with what has left the tree of its leader and carries its tag, or is in its cgroup. */
type MeasureServers = (
  servers: readonly { readonly pid: number; readonly tag: string }[],
) => Promise<ReadonlyMap<number, ProcessUsage>>;

interface KnownServer {
  readonly usage: ProcessUsage;
  /** When its processes were looked at. */
  readonly atMs: number;
  /** When its cgroup was. */
  countedAtMs: number;
  /** When it is next. */
  dueAtMs: number;
}

/** Memory of a server at rest can be written to disk, so it is looked at again after that. */
const restMs = 5 * 60_000;
/** Of more than so many servers, those that have rested for a minute are looked at less often: they are most of the work. */
const manyServers = 100;
const restedAfterMs = 60_000;
const restedPauseMs = 30_000;

/**
 * A server whose processes are all in its cgroup, which has used no CPU time since it was measured, has started and
 * ended none: it costs reading one number.
 */
export function createServerMeter({
  view,
  cgroups,
  monotonicMs = () => performance.now(),
}: {
  readonly view: ProcessView;
  readonly cgroups: Cgroups;
  readonly monotonicMs?: () => number;
}): MeasureServers {
  /** By tag: those with all processes in a cgroup. */
  const known = new Map<string, KnownServer>();

  return async (servers) => {
    const atMs = monotonicMs();
    const result = new Map<number, ProcessUsage>();
    for (const [tag, { countedAtMs }] of known) if (atMs - countedAtMs > restMs) known.delete(tag);
    const areMany = servers.length > manyServers;
    const working = servers.flatMap(({ pid, tag }) => {
      const last = known.get(tag);
      const isDue = last === undefined || !areMany || atMs >= last.dueAtMs;
      const cpuSeconds = isDue ? cgroups.cpuSeconds(tag) : last.usage.cpuSeconds;
      if (last === undefined || last.usage.cpuSeconds !== cpuSeconds || atMs - last.atMs > restMs)
        return { pid, tag, cpuSeconds, last, members: cgroups.members(tag) };
      const uptimeSeconds = last.usage.uptimeSeconds + Math.round((atMs - last.atMs) / 1000);
      result.set(pid, { ...last.usage, cpuCores: 0, uptimeSeconds });
      if (!isDue) return [];
      last.countedAtMs = atMs;
      last.dueAtMs = atMs - last.atMs < restedAfterMs ? atMs : atMs + restedPauseMs;
      return [];
    });
    // At once, so that all without a cgroup share one look.
    const others = await Promise.all(
      working.map(async ({ pid, tag, members }) => {
        return [pid, members.length > 0 ? members : await view.taggedWith(tag)] as const;
      }),
    );
    const trees = await measureTrees(
      working.map(({ pid }) => pid),
      new Map(others),
    );
    for (const { pid, tag, members, cpuSeconds, last } of working) {
      known.delete(tag);
      const tree = trees.get(pid);
      if (tree === undefined) continue;
      const isCounted =
        cpuSeconds !== undefined && tree.pids.every((each) => members.includes(each));
      const cpuCores =
        isCounted && last !== undefined ? coresSince(last, cpuSeconds, atMs) : undefined;
      const usage = { ...tree.usage, ...(cpuCores !== undefined && { cpuCores }), cpuSeconds };
      result.set(pid, usage);
      const dueAtMs = last?.usage.cpuSeconds === cpuSeconds ? atMs + restedPauseMs : atMs;
      if (isCounted) known.set(tag, { usage, atMs, countedAtMs: atMs, dueAtMs });
    }
    return result;
  };
}

function coresSince(
  { usage, countedAtMs }: KnownServer,
  cpuSeconds: number,
  atMs: number,
): number | undefined {
  if (atMs <= countedAtMs) return undefined;
  return Math.max(0, cpuSeconds - (usage.cpuSeconds ?? 0)) / ((atMs - countedAtMs) / 1000);
}
