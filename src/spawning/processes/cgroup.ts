import { hash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pid as ownPid } from 'node:process';
import { readProcessFile } from '../../platform/process-table/process-table.ts';
import { type Controller, type ControllerPlace, findHierarchies } from './cgroup-hierarchies.ts';
import { splitTag } from './process-tag.ts';

/** What the kernel may hold the processes of a cgroup to. */
export interface CgroupLimits {
  readonly memoryBytes?: number;
  /** 1 is one core. */
  readonly cpuCores?: number;
  /** Processes and threads at once. */
  readonly processes?: number;
}

export interface MadeCgroup {
  /** A process joins by writing its pid to `cgroup.procs` in each. */
  readonly folders: readonly string[];
  /** Which of the limits the kernel holds; none of the others. */
  readonly held: ReadonlySet<keyof CgroupLimits>;
}

/** How often a limit was met since the cgroup was made. */
export interface CgroupEvents {
  /** Processes that the kernel ended because they ran out of memory. */
  readonly oomKills: number;
  /** Processes that could not be started because there were too many. */
  readonly refusedForks: number;
}

/**
 * Cgroups of a tag: one of version 2, and for limits those of version 1 where the controllers are there. What
 * a process starts stays in them, whatever it does to its parents, its session and its environment.
 * Nothing here throws: where the hub may not make cgroups, none is made and all are empty.
 */
export interface Cgroups {
  /** Makes the cgroups of a tag; undefined where that is not possible. */
  make(tag: string, limits?: CgroupLimits): Promise<MadeCgroup | undefined>;
  /** Undefined where nothing is counted. */
  events(tag: string): CgroupEvents | undefined;
  /** CPU time of all that was ever in it; undefined where none is counted. */
  cpuSeconds(tag: string): number | undefined;
  /** The tags of a family that have cgroups, empty ones among them. */
  tagsOf(family: string): readonly string[];
  /** Pids of the processes in it and below. */
  members(tag: string): readonly number[];
  /** Sends SIGKILL to all of them at once, so that none can fork in between. */
  kill(tag: string): void;
  /**
   * Lets its processes rest, or go on, with all that they have in memory (freezer of version 2). False where there is none
   * of them.
   */
  freeze(tag: string, isFrozen: boolean): boolean;
  /**
   * Whether it has had members and has none any more. A process that forks in that moment would still
   * be in it, so nothing needs to be looked for again. False where that is not known.
   */
  isDeserted(tag: string): boolean;
  /** Removes it once it is empty. */
  remove(tag: string): Promise<void>;
}

/** Not one process is in a cgroup of its own. */
export const noCgroups: Cgroups = {
  make: async () => undefined,
  events: () => undefined,
  cpuSeconds: () => undefined,
  tagsOf: () => [],
  members: () => [],
  kill: () => {},
  freeze: () => false,
  isDeserted: () => false,
  remove: async () => {},
};

/** The cgroups of this machine. */
export const systemCgroups: Cgroups = {
  async make(tag, limits = {}) {
    const name = nameOf(tag);
    const { own, controlled, places } = findHierarchies();
    const held = new Set<keyof CgroupLimits>();
    const folders = new Set<string>();
    for (const [limit, value] of Object.entries(limits)) {
      if (value === undefined) continue;
      const rule = rules[limit as keyof CgroupLimits];
      const place = places[rule.controller];
      const folder = place && (await makeFolder(join(place.folder, name)));
      if (place === undefined || folder === undefined) continue;
      if (!setLimit(folder, rule.files(value, place.version))) continue;
      folders.add(folder);
      held.add(limit as keyof CgroupLimits);
    }
    // One of version 2 in any case: only there all processes can be ended at once.
    const isInUnified = [...folders].some((folder) => folder === join(controlled ?? '', name));
    const plain = own && !isInUnified ? await makeFolder(join(own, name)) : undefined;
    if (plain !== undefined) folders.add(plain);
    return folders.size === 0 ? undefined : { folders: [...folders], held };
  },
  events(tag) {
    const { places } = findHierarchies();
    const count = (place: ControllerPlace | undefined, files: EventFiles, key: string) =>
      place && readValue(join(place.folder, nameOf(tag), files[place.version]), key);
    const oomKills = count(places.memory, oomFiles, 'oom_kill');
    const refusedForks = count(places.pids, pidsFiles, 'max');
    if (oomKills === undefined && refusedForks === undefined) return undefined;
    return { oomKills: oomKills ?? 0, refusedForks: refusedForks ?? 0 };
  },
  tagsOf(family) {
    const start = `${hashedName(family)}-`;
    const names = basesOf(findHierarchies()).flatMap(namesIn);
    const starts = names.filter((name) => name.startsWith(start));
    return [...new Set(starts)].map((name) => `${family}#${name.slice(start.length)}`);
  },
  members: (tag) => [...new Set(foldersOf(tag).flatMap(membersBelow))],
  kill(tag) {
    for (const folder of unifiedFoldersOf(tag)) {
      // A process of the hub's own account might have moved the hub into it.
      if (membersBelow(folder).includes(ownPid)) continue;
      try {
        writeFileSync(join(folder, 'cgroup.kill'), '1');
      } catch {
        // It is not there, or Linux is older than 5.14: its members get signals one by one.
      }
    }
  },
  cpuSeconds(tag) {
    const used = Math.max(0, ...unifiedFoldersOf(tag).map(usedMicroseconds));
    return used === 0 ? undefined : used / 1e6;
  },
  freeze(tag, isFrozen) {
    const frozen = unifiedFoldersOf(tag).filter((folder) => {
      // A process of the hub's own account might have moved the hub into it.
      if (isFrozen && membersBelow(folder).includes(ownPid)) return false;
      return setLimit(folder, [{ file: 'cgroup.freeze', text: isFrozen ? '1' : '0' }]);
    });
    return frozen.length > 0;
  },
  isDeserted: (tag) =>
    unifiedFoldersOf(tag).some((folder) => {
      // One that a command could not join has used no processor time.
      return (
        usedMicroseconds(folder) > 0 && readValue(join(folder, 'cgroup.events'), 'populated') === 0
      );
    }),
  async remove(tag) {
    for (const folder of foldersOf(tag)) await removeBelow(folder).catch(() => undefined);
  },
};

/** Whether servers can rest here: the hub may make cgroups of version 2. */
export function canFreeze(): boolean {
  return findHierarchies().own !== undefined;
}

/** Which limits the kernel would hold for the servers of this hub. */
export function holdableLimits(): ReadonlySet<keyof CgroupLimits> {
  const { places } = findHierarchies();
  const limits = Object.keys(rules) as (keyof CgroupLimits)[];
  return new Set(limits.filter((limit) => places[rules[limit].controller] !== undefined));
}

interface LimitFile {
  readonly file: string;
  readonly text: string;
  /** Not every kernel has it: one without swap, for example. */
  readonly isOptional?: true;
}

const cpuPeriodUs = 100_000;

/** Files of a limit (kernel documentation, cgroup-v2 and cgroup-v1). */
const rules: Readonly<
  Record<
    keyof CgroupLimits,
    {
      readonly controller: Controller;
      readonly files: (value: number, version: 1 | 2) => readonly LimitFile[];
    }
  >
> = {
  memoryBytes: {
    controller: 'memory',
    files: (bytes, version) =>
      version === 2
        ? [
            { file: 'memory.max', text: String(bytes) },
            { file: 'memory.swap.max', text: '0', isOptional: true },
          ]
        : [
            // One that was left of an earlier run may be lower than the new limit, which is then refused.
            { file: 'memory.memsw.limit_in_bytes', text: '-1', isOptional: true },
            { file: 'memory.limit_in_bytes', text: String(bytes) },
            { file: 'memory.memsw.limit_in_bytes', text: String(bytes), isOptional: true },
          ],
  },
  cpuCores: {
    controller: 'cpu',
    files(cores, version) {
      // Less than a millisecond is refused.
      const quotaUs = Math.max(1_000, Math.round(cores * cpuPeriodUs));
      return version === 2
        ? [{ file: 'cpu.max', text: `${quotaUs} ${cpuPeriodUs}` }]
        : [
            { file: 'cpu.cfs_period_us', text: String(cpuPeriodUs) },
            { file: 'cpu.cfs_quota_us', text: String(quotaUs) },
          ];
    },
  },
  processes: {
    controller: 'pids',
    files: (processes) => [{ file: 'pids.max', text: String(processes) }],
  },
};

type EventFiles = Readonly<Record<1 | 2, string>>;
const oomFiles: EventFiles = { 1: 'memory.oom_control', 2: 'memory.events' };
const pidsFiles: EventFiles = { 1: 'pids.events', 2: 'pids.events' };

function setLimit(folder: string, files: readonly LimitFile[]): boolean {
  return files.every(({ file, text, isOptional }) => {
    try {
      writeFileSync(join(folder, file), text);
      return true;
    } catch {
      return isOptional === true;
    }
  });
}

async function makeFolder(folder: string): Promise<string | undefined> {
  try {
    await mkdir(folder);
    return folder;
  } catch (thrown) {
    return isExisting(thrown) ? folder : undefined;
  }
}

/** The starts of a family are found by what their names begin with. */
function nameOf(tag: string): string {
  const parts = splitTag(tag);
  return parts === undefined ? hashedName(tag) : `${hashedName(parts.family)}-${parts.start}`;
}

function hashedName(text: string): string {
  return `hub-${hash('sha256', text).slice(0, 24)}`;
}

function unifiedFoldersOf(tag: string): readonly string[] {
  return unifiedBasesOf(findHierarchies()).map((base) => join(base, nameOf(tag)));
}

/** Every folder that a tag may have. */
function foldersOf(tag: string): readonly string[] {
  return basesOf(findHierarchies()).map((base) => join(base, nameOf(tag)));
}

type Hierarchies = ReturnType<typeof findHierarchies>;

function unifiedBasesOf({ own, controlled }: Hierarchies): readonly string[] {
  return [...new Set([own, controlled].filter((base) => base !== undefined))];
}

/** Where cgroups of any tag may be. */
function basesOf(hierarchies: Hierarchies): readonly string[] {
  const controlled = Object.values(hierarchies.places).map(({ folder }) => folder);
  return [...new Set([...unifiedBasesOf(hierarchies), ...controlled])];
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function membersBelow(folder: string): readonly number[] {
  try {
    const text = readProcessFile(join(folder, 'cgroup.procs')).toString('latin1');
    // 0 stands for a process of another pid namespace.
    const pids = text.split('\n').flatMap((line) => (Number(line) > 0 ? [Number(line)] : []));
    const below = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => membersBelow(join(folder, entry.name)));
    return [...pids, ...below];
  } catch {
    return [];
  }
}

/** A number of one of the kernel's flat keyed files; undefined where it is not told. */
const usedMicroseconds = (folder: string) => readValue(join(folder, 'cpu.stat'), 'usage_usec') ?? 0;

function readValue(file: string, key: string): number | undefined {
  try {
    const text = readProcessFile(file).toString('latin1');
    const [, value] = new RegExp(`^${key} (\\d+)$`, 'm').exec(text) ?? [];
    return value === undefined ? undefined : Number(value);
  } catch {
    return undefined;
  }
}

async function removeBelow(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries) {
    if (entry.isDirectory()) await removeBelow(join(folder, entry.name));
  }
  await rmdir(folder);
}

function isExisting(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST';
}
