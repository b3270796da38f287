import { kill, pid as ownPid } from 'node:process';
import { collectTrees } from '../../platform/process-table/process-table.ts';
import { type Cgroups, systemCgroups } from './cgroup.ts';
import { type Clock, systemClock } from './clock.ts';
import { directView, type ProcessView } from './process-view.ts';

/** What is to be ended: a process group, whatever came from it, and whatever carries its tag or is in its cgroup. */
export interface ProcessGroup {
  /** Pid of the group's leader, or undefined when only the tag is known. */
  readonly groupId: number | undefined;
  readonly tag: string;
}

export interface EndedGroup {
  /** How many processes were alive. */
  readonly found: number;
  /** Pids that outlived SIGKILL: in an uninterruptible wait, or of a user the hub may not signal. */
  readonly survivors: readonly number[];
}

/** How long processes that left the group have between SIGTERM and SIGKILL. */
const stragglerGraceMs = 1_000;
/** How long the kernel has to remove a process after SIGKILL. */
const killPatienceMs = 5_000;
const maxPollMs = 250;

/**
 * How long to wait for each further look when one has found nothing: a process that is forked, or
 * begins another program, in the very moment of a look is not seen. A cgroup shows it all the same.
 */
const secondLooksMs = [50, 200];
/** How often what turns up late is ended as well, before it counts as a survivor. */
const maxRounds = 5;

/** How to look and wait; the defaults are right for those who end few processes. */
export interface EndingTools {
  readonly clock?: Clock | undefined;
  readonly view?: ProcessView | undefined;
  readonly cgroups?: Cgroups | undefined;
}

/**
 * Ends a process group and everything it started: SIGTERM to the group, grace, SIGTERM to those that
 * left the group, SIGKILL to whatever remains, until several looks in a row find nothing, or one where
 * all were in a cgroup. Never throws.
 */
export async function endProcessGroup(
  group: ProcessGroup,
  {
    graceMs,
    clock = systemClock,
    view = directView,
    cgroups = systemCgroups,
  }: EndingTools & { readonly graceMs: number },
): Promise<EndedGroup> {
  const { tag } = group;
  const found = new Set<number>();
  /** Whether any was seen outside of the cgroup, where the next one could be as well. */
  let isAnyOutside = false;
  async function scan(): Promise<readonly number[]> {
    const before = new Set(cgroups.members(tag));
    const members = await livingMembers(group, view, cgroups);
    const after = new Set(cgroups.members(tag));
    isAnyOutside ||= members.some((pid) => !before.has(pid) && !after.has(pid));
    for (const pid of members) found.add(pid);
    return members;
  }

  let survivors = await scan();
  for (let round = 0; round < maxRounds; round += 1) {
    if (survivors.length > 0) {
      survivors = await endMembers(group, { graceMs, scan, clock, view, cgroups });
      if (survivors.length > 0) break;
    }
    for (const waitMs of secondLooksMs) {
      if (survivors.length > 0 || (!isAnyOutside && cgroups.isDeserted(tag))) break;
      await clock.sleep(waitMs);
      survivors = await scan();
    }
    if (survivors.length === 0) break;
  }
  if (survivors.length === 0) await cgroups.remove(tag);
  return { found: found.size, survivors };
}

/** Tags of a family that a process carries or a cgroup has: those of starts of which something may be left. */
export async function tagsOfFamily(
  family: string,
  { view = directView, cgroups = systemCgroups }: EndingTools = {},
): Promise<readonly string[]> {
  return [...new Set([...(await view.tagsOf(family)), ...cgroups.tagsOf(family)])];
}

/**
 * Ends what is left of all starts of a family, as far as one look finds it: a thorough one does so also
 * when a process begins another program in that very moment. Resolves to the pids that could not be ended.
 */
export async function endFamily(
  family: string,
  options: EndingTools & {
    readonly graceMs: number;
    readonly isThorough: boolean;
    /** Asked when something is found. */
    readonly mayEnd: () => boolean;
  },
): Promise<readonly number[]> {
  const { clock = systemClock, isThorough, mayEnd } = options;
  const survivors = new Set<number>();
  for (const waitMs of isThorough ? [0, ...secondLooksMs] : [0]) {
    if (waitMs > 0) await clock.sleep(waitMs);
    const tags = await tagsOfFamily(family, options);
    if (!mayEnd()) break;
    const ended = await Promise.all(
      tags.map((tag) => endProcessGroup({ groupId: undefined, tag }, options)),
    );
    for (const pid of ended.flatMap((each) => each.survivors)) survivors.add(pid);
  }
  return [...survivors];
}

async function endMembers(
  { groupId, tag }: ProcessGroup,
  {
    graceMs,
    scan,
    clock,
    view,
    cgroups,
  }: {
    readonly graceMs: number;
    readonly scan: () => Promise<readonly number[]>;
    readonly clock: Clock;
    readonly view: ProcessView;
    readonly cgroups: Cgroups;
  },
): Promise<readonly number[]> {
  if (groupId !== undefined) {
    // Only the group at first: a server ends its own kernels and terminals in order, given the time.
    signalGroup(groupId, 'SIGTERM');
    await waitUntilEmpty(() => membersOfGroup(groupId, view), graceMs, clock);
  }
  const inGroup = new Set(groupId === undefined ? [] : await membersOfGroup(groupId, view));
  const left = await scan();
  if (left.length === 0) return [];
  const stragglers = left.filter((pid) => !inGroup.has(pid));
  for (const pid of stragglers) terminate(pid);
  const patienceMs = stragglers.length === 0 ? 0 : Math.min(graceMs, stragglerGraceMs);
  await waitUntilEmpty(scan, patienceMs, clock);

  return waitUntilEmpty(
    async () => {
      if (groupId !== undefined) signalGroup(groupId, 'SIGKILL');
      cgroups.kill(tag);
      const remaining = await scan();
      for (const pid of remaining) sendSignal(pid, 'SIGKILL');
      return remaining;
    },
    killPatienceMs,
    clock,
  );
}

/** Lists the living processes of a group, its descendants and those with its tag or in its cgroup. */
export async function livingMembers(
  { groupId, tag }: ProcessGroup,
  view = directView,
  cgroups = systemCgroups,
): Promise<readonly number[]> {
  const tagged = await view.taggedWith(tag);
  const leaders = [...(groupId === undefined ? [] : [groupId]), ...tagged, ...cgroups.members(tag)];
  if (leaders.length === 0) return [];
  const trees = collectTrees(await view.processes(), leaders);
  return [...new Set([...trees.values()].flat())].filter((pid) => pid !== ownPid);
}

async function membersOfGroup(groupId: number, view: ProcessView): Promise<readonly number[]> {
  if (isGroupGone(groupId)) return [];
  const entries = await view.processes();
  return entries
    .filter((entry) => entry.groupId === groupId && !entry.isZombie)
    .map((entry) => entry.pid);
}

/** Cheap to ask, where the answer is yes: a group may also hold only what waits to be reaped. */
function isGroupGone(groupId: number): boolean {
  try {
    kill(-groupId, 0);
    return false;
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'ESRCH';
  }
}

function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  sendSignal(-groupId, signal);
  if (signal === 'SIGTERM') sendSignal(-groupId, 'SIGCONT');
}

function terminate(pid: number): void {
  sendSignal(pid, 'SIGTERM');
  // A stopped process does not act on SIGTERM before it continues.
  sendSignal(pid, 'SIGCONT');
}

/** Sends a signal to one process, or to a group when the pid is negative. */
function sendSignal(pid: number, signal: NodeJS.Signals): void {
  // 0, 1 and -1 would reach the hub's own group, init, or every process of the machine.
  if (pid >= -1 && pid <= 1) return;
  try {
    kill(pid, signal);
  } catch {
    // Gone already, or of a user the hub may not signal; the next scan of the process table tells.
  }
}

/** Polls, ever less often, until nothing is left or patience ends. */
async function waitUntilEmpty(
  scan: () => Promise<readonly number[]>,
  patienceMs: number,
  clock: Clock,
): Promise<readonly number[]> {
  const deadline = clock.monotonicMs() + patienceMs;
  let remaining = await scan();
  for (let pollMs = 5; remaining.length > 0; pollMs = Math.min(pollMs * 2, maxPollMs)) {
    const leftMs = deadline - clock.monotonicMs();
    if (leftMs <= 0) break;
    await clock.sleep(Math.min(pollMs, leftMs));
    remaining = await scan();
  }
  return remaining;
}
