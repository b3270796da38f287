import { kill } from 'node:process';
import { type Clock, systemClock } from './clock.ts';
import { collectTrees } from './process-table.ts';
import { directView, type ProcessView } from './process-view.ts';

/** What is to be ended: a process group, whatever came from it, and whatever carries its tag. */
export interface ProcessGroup {
  /** Pid of the group's leader, or undefined when only the tag is known. */
  readonly groupId: number | undefined;
  readonly tag: string;
}

export interface EndedGroup {
  /** How many processes were alive when ending began. */
  readonly found: number;
  /** Pids that outlived SIGKILL: in an uninterruptible wait, or of a user the hub may not signal. */
  readonly survivors: readonly number[];
}

/** How long processes that left the group have between SIGTERM and SIGKILL. */
const stragglerGraceMs = 1_000;
/** How long the kernel has to remove a process after SIGKILL. */
const killPatienceMs = 5_000;
const longestPollMs = 250;

/**
 * Ends a process group and everything it started: SIGTERM to the group, grace, SIGTERM to those that
 * left the group, SIGKILL to whatever remains. Never throws.
 */
export async function endProcessGroup(
  group: ProcessGroup,
  {
    graceMs,
    clock = systemClock,
    view = directView,
  }: { graceMs: number; clock?: Clock; view?: ProcessView },
): Promise<EndedGroup> {
  const { groupId } = group;
  const found = (await livingMembers(group, view)).length;
  if (found === 0) return { found, survivors: [] };

  if (groupId !== undefined) {
    // Only the group at first: a server ends its own kernels and terminals in order, given the time.
    signalGroup(groupId, 'SIGTERM');
    await waitUntilEmpty(() => membersOfGroup(groupId, view), graceMs, clock);
  }
  const inGroup = new Set(groupId === undefined ? [] : await membersOfGroup(groupId, view));
  const stragglers = (await livingMembers(group, view)).filter((pid) => !inGroup.has(pid));
  for (const pid of stragglers) terminate(pid);
  const patienceMs = stragglers.length === 0 ? 0 : Math.min(graceMs, stragglerGraceMs);
  await waitUntilEmpty(() => livingMembers(group, view), patienceMs, clock);

  const survivors = await waitUntilEmpty(
    async () => {
      if (groupId !== undefined) signalGroup(groupId, 'SIGKILL');
      const remaining = await livingMembers(group, view);
      for (const pid of remaining) sendSignal(pid, 'SIGKILL');
      return remaining;
    },
    killPatienceMs,
    clock,
  );
  return { found, survivors };
}

/** Lists the living processes of a group, its descendants and those that carry its tag. */
export async function livingMembers(
  { groupId, tag }: ProcessGroup,
  view = directView,
): Promise<readonly number[]> {
  const tagged = await view.taggedWith(tag);
  const leaders = groupId === undefined ? tagged : [groupId, ...tagged];
  const trees = collectTrees(await view.processes(), leaders);
  return [...new Set([...trees.values()].flat())];
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
  const deadline = clock.now() + patienceMs;
  let remaining = await scan();
  for (let pollMs = 5; remaining.length > 0; pollMs = Math.min(pollMs * 2, longestPollMs)) {
    const leftMs = deadline - clock.now();
    if (leftMs <= 0) break;
    await clock.sleep(Math.min(pollMs, leftMs));
    remaining = await scan();
  }
  return remaining;
}
