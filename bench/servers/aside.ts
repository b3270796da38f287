import { globSync, rmdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import { join } from 'node:path';
import { findHierarchies } from '../../src/spawning/processes/cgroup-hierarchies.ts';
import { until } from '../../test/support/test-hub.ts';

/** By how much what runs aside is nicer than the hub. */
const nice = 10;
/** The same as a weight among cgroups, which have 1024 by default (cgroup v1) or are told it as such (v2). */
const weights = {
  1: { file: 'cpu.shares', value: '110' },
  2: { file: 'cpu.weight.nice', value: String(nice) },
} as const;

/** Where programs run that have the processors only when the hub does not need them. */
export interface Aside extends AsyncDisposable {
  /** Path of its cgroup among those of one hierarchy, for what makes cgroups of its own in there. */
  readonly cgroup: string;
  /** Runs work whose child processes, and theirs, run aside. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * Makes room for an engine beside the hub, as if it were on other machines: it is niced, and in a cgroup, because a
 * kernel with `sched_autogroup_enabled` weighs sessions and not processes (sched(7)), and each container, job
 * and pod has a session of its own.
 */
export async function openAside(): Promise<Aside> {
  const { places, own } = findHierarchies();
  const { cpu } = places;
  if (cpu === undefined)
    throw new Error('an engine beside the hub needs a cgroup with cpu control');
  const name = `hub-bench-${process.pid}`;
  const folder = join(cpu.folder, name);
  const home = cpu.version === 1 ? cpu.folder : (own ?? cpu.folder);
  const { file, value } = weights[cpu.version];
  await mkdir(folder);
  await writeFile(join(folder, file), value);
  const moveTo = (cgroup: string) => writeFile(join(cgroup, 'cgroup.procs'), String(process.pid));

  return {
    cgroup: `/${name}`,
    async run(work) {
      const before = getPriority();
      await moveTo(folder);
      setPriority(Math.min(before + nice, 19));
      try {
        return await work();
      } finally {
        setPriority(before);
        await moveTo(home);
      }
    },
    async [Symbol.asyncDispose]() {
      // An engine that is told of it makes one of the same name in each hierarchy.
      const folders = () => globSync(`/sys/fs/cgroup/{${name},*/${name}}`);
      await until(() => folders().every(isRemoved), 'no process is left in the cgroup');
    },
  };
}

function isRemoved(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}
