import { type ChildProcess, spawn } from 'node:child_process';
import { geteuid } from 'node:process';
import { Duplex } from 'node:stream';
import { inEnglish } from '../texts/text.ts';
import {
  type CgroupEvents,
  type CgroupLimits,
  type Cgroups,
  type MadeCgroup,
  systemCgroups,
} from './cgroup.ts';
import type { Clock } from './clock.ts';
import { findClosedPlace } from './closed-path.ts';
import { explainLaunchProblem } from './launch-check.ts';
import { beginning, canBeginInShell, shellCommand } from './launch-shell.ts';
import type { OutputLog } from './output-log.ts';
import { type EndedGroup, type EndingTools, endProcessGroup } from './process-group.ts';
import { identifyChild, isSameProcess, type ProcessIdentity } from './process-identity.ts';
import { processTagVariable } from './process-tag.ts';
import type { ProcessView } from './process-view.ts';
import { findSetpriv, runsAsRoot, type SystemUser } from './system-user.ts';

export interface StartOptions {
  readonly command: readonly string[];
  /** The whole environment of the process. */
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly output: OutputLog;
  /** What the kernel is to hold it to, where the hub may make cgroups. */
  readonly limits?: CgroupLimits | undefined;
  /** Finds whatever the process starts; unique on the machine, such as the path of the output file. */
  readonly tag: string;
  /** Account to run under; needs a hub that is root, unless it is the hub's own. */
  readonly user?: SystemUser | undefined;
  /** Asked at the last moment: why it must not be started any more. */
  readonly refusal?: () => string | undefined;
  readonly clock?: Clock;
  readonly view?: ProcessView;
  readonly cgroups?: Cgroups;
}

export type StartOutcome =
  | {
      readonly started: true;
      readonly process: SupervisedProcess;
      /** Which limits the kernel holds. */
      readonly held: MadeCgroup['held'];
    }
  | { readonly started: false; readonly reason: string };

export interface ProcessExit {
  /** Exit code; null when a signal ended it or when it is unknown. */
  readonly code: number | null;
  readonly signal: string | null;
  /** How many processes it left behind, which were then ended. */
  readonly leftBehind: number;
  /** How often it met its limits until it ended. */
  readonly events: CgroupEvents | undefined;
}

/** One process with its group: what it started ends with it. */
export interface SupervisedProcess {
  readonly identity: ProcessIdentity;
  /** Resolves when the process and all it started are gone; never rejects. */
  readonly exited: Promise<ProcessExit>;
  isRunning(): boolean;
  /**
   * SIGTERM to the group, grace, SIGKILL; resolves when all is gone, or with the pids that even that
   * did not end. May be called again.
   */
  stop(options: { readonly graceMs: number }): Promise<{ readonly survivors: readonly number[] }>;
}

/** How long what a process left behind has between SIGTERM and SIGKILL. */
const leftoverGraceMs = 1_000;
const adoptedPollMs = 1_000;

/**
 * Starts a program in its own session and process group, its output going to a file. Why it cannot
 * be started is a value, not an exception.
 */
export async function startProcess(options: StartOptions): Promise<StartOutcome> {
  const {
    command,
    environment,
    workingDirectory,
    output,
    tag,
    view,
    clock,
    cgroups = systemCgroups,
  } = options;
  const problem =
    explainUserProblem(options.user) ??
    (await explainLaunchProblem(command, workingDirectory, environment['PATH']));
  if (problem !== undefined) return { started: false, reason: problem };
  // The hub's own account needs no switch, and without root none is possible.
  const user = runsAsRoot() ? options.user : undefined;

  try {
    if (user !== undefined) await output.giveTo(user);
    const { limits } = options;
    const isInShell = await canUseShell({ command, environment, user });
    const cgroup = isInShell ? await cgroups.make(tag, limits) : undefined;
    const launch = await asUser(command, user, { isInShell, cgroup });
    const refusal = options.refusal?.();
    if (refusal !== undefined) {
      await cgroups.remove(tag);
      return { started: false, reason: refusal };
    }
    const child = spawn(launch.program, launch.programArguments, {
      ...launch.account,
      cwd: workingDirectory,
      env: { ...environment, [processTagVariable]: tag },
      detached: true,
      stdio: [
        'ignore',
        output.descriptor,
        output.descriptor,
        ...(isInShell ? (['pipe'] as const) : []),
      ],
    });
    // Before the first await, so that even a child that has ended already is known by its start time.
    const identity = child.pid === undefined ? undefined : identifyChild(child.pid);
    const ended = new Promise<EndOfLeader>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    await startOf(child);
    begin(child);
    // A hub that stops must not wait for servers that outlive it.
    child.unref();
    if (identity === undefined)
      return { started: false, reason: inEnglish`it ended while it was started` };
    return {
      started: true,
      process: supervise({ identity, ended, tag, output, clock, view, cgroups }),
      held: cgroup?.held ?? new Set(),
    };
  } catch (thrown) {
    await cgroups.remove(tag);
    return { started: false, reason: await explainSpawnError(thrown, command, options.user) };
  }
}

/**
 * Takes over a process that a former hub started; undefined when it is gone or is another one now.
 * Its exit code cannot be known, and its end is noticed within a second.
 */
export function adoptProcess(options: {
  readonly identity: ProcessIdentity;
  readonly tag: string;
  readonly output: OutputLog;
  readonly clock?: Clock;
  readonly view?: ProcessView;
}): SupervisedProcess | undefined {
  const { identity } = options;
  if (!isSameProcess(identity)) return undefined;
  const { promise: ended, resolve } = Promise.withResolvers<EndOfLeader>();
  function poll(): void {
    if (isSameProcess(identity)) return;
    clearInterval(timer);
    resolve({ code: null, signal: null });
  }
  const timer = setInterval(poll, adoptedPollMs).unref();
  return supervise({ ...options, ended, pollForEnd: poll });
}

interface EndOfLeader {
  readonly code: number | null;
  readonly signal: string | null;
}

function supervise(
  options: EndingTools & {
    readonly identity: ProcessIdentity;
    readonly ended: Promise<EndOfLeader>;
    readonly tag: string;
    readonly output: OutputLog;
    readonly pollForEnd?: () => void;
  },
): SupervisedProcess {
  const {
    identity,
    ended,
    tag,
    output,
    clock,
    view,
    cgroups = systemCgroups,
    pollForEnd,
  } = options;
  const group = { groupId: identity.pid, tag };
  let isRunning = true;
  let stopping: Promise<EndedGroup> | undefined;

  const exited = ended.then(async (end) => {
    isRunning = false;
    // Its cgroup goes with the last process.
    const events = cgroups.events(tag);
    const leftover =
      stopping ?? endProcessGroup(group, { graceMs: leftoverGraceMs, clock, view, cgroups });
    const { found } = await leftover;
    // So that the last output is there when the exit is reported.
    await output.flush().catch(() => undefined);
    return { ...end, leftBehind: stopping === undefined ? found : 0, events };
  });

  return {
    identity,
    exited,
    isRunning: () => isRunning,
    async stop({ graceMs }) {
      // Once the leader is reaped its pid may belong to another process.
      if (isRunning) stopping ??= endProcessGroup(group, { graceMs, clock, view, cgroups });
      const survivors = (await stopping)?.survivors ?? [];
      if (survivors.includes(identity.pid)) return { survivors };
      pollForEnd?.();
      await exited;
      return { survivors };
    },
  };
}

async function startOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    // Stays for good: a later error event, from a failed signal, must not end the hub.
    child.on('error', reject);
  });
}

/** Tells a command that waits for it to begin. */
function begin({ stdio }: ChildProcess): void {
  const gate = stdio[3];
  if (!(gate instanceof Duplex)) return;
  // It may have ended by now, which its exit tells.
  gate.on('error', () => undefined);
  gate.end(beginning, () => gate.destroy());
}

interface Launch {
  readonly program: string;
  readonly programArguments: readonly string[];
  readonly account: { readonly uid?: number; readonly gid?: number };
}

/** Whether the shell can begin a command, in a cgroup of its own too; otherwise it is started without both. */
async function canUseShell({
  command: [program = ''],
  environment,
  user,
}: Pick<StartOptions, 'command' | 'environment' | 'user'>): Promise<boolean> {
  if (!canBeginInShell(environment)) return false;
  if (user === undefined) return true;
  // Without it `spawn` tells who may not execute what.
  if (program.includes('/') && (await findClosedPlace(program, user)) !== undefined) return false;
  return (await findSetpriv()) !== undefined;
}

/** Adds the shell and the switch of the account: by `spawn` itself or, where that cannot, by `setpriv`. */
async function asUser(
  command: readonly string[],
  user: SystemUser | undefined,
  { isInShell, cgroup }: { readonly isInShell: boolean; readonly cgroup: MadeCgroup | undefined },
): Promise<Launch> {
  const switched = user === undefined ? undefined : await switchingCommand(command, user, cgroup);
  const full = switched ?? command;
  const [program = '', ...programArguments] = isInShell ? shellCommand(cgroup, full) : full;
  const account =
    user === undefined || switched !== undefined ? {} : { uid: user.userId, gid: user.groupId };
  return { program, programArguments, account };
}

/** A command that switches to an account; undefined where `spawn` can, or there is no `setpriv`. */
async function switchingCommand(
  command: readonly string[],
  { userId, groupId, groupIds }: SystemUser,
  cgroup: MadeCgroup | undefined,
): Promise<readonly string[] | undefined> {
  // `spawn` drops every group but the primary one, and may not join a cgroup any more.
  const isNeeded = groupIds.length > 1 || cgroup !== undefined;
  const setpriv = isNeeded ? await findSetpriv() : undefined;
  if (setpriv === undefined) return undefined;
  const switchArguments = [
    `--reuid=${userId}`,
    `--regid=${groupId}`,
    `--groups=${groupIds.join()}`,
  ];
  return [setpriv, ...switchArguments, '--', ...command];
}

function explainUserProblem(user: SystemUser | undefined): string | undefined {
  if (user === undefined || runsAsRoot() || user.userId === geteuid?.()) return undefined;
  return inEnglish`running as user ${user.name} needs a hub that runs as root`;
}

async function explainSpawnError(
  thrown: unknown,
  [program = '']: readonly string[],
  user: SystemUser | undefined,
): Promise<string> {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  switch (code) {
    case 'ENOENT':
      return inEnglish`${program} or the interpreter named in its first line does not exist`;
    case 'EACCES':
      return (
        (user === undefined
          ? inEnglish`permission denied: ${program}`
          : inEnglish`permission denied for user ${user.name}: ${program}`) +
        (await explainClosedFolder(program, user))
      );
    case 'EPERM':
      return user === undefined
        ? inEnglish`the hub may not switch to another user`
        : inEnglish`the hub may not run programs as user ${user.name}`;
    case 'E2BIG':
      return inEnglish`arguments and environment of ${program} are too long`;
    case 'EAGAIN':
      return user === undefined
        ? inEnglish`too many processes`
        : inEnglish`too many processes for user ${user.name}`;
    default:
      return inEnglish`${program} cannot be started: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  }
}

async function explainClosedFolder(program: string, user: SystemUser | undefined): Promise<string> {
  const closed = user && program.includes('/') ? await findClosedPlace(program, user) : undefined;
  return closed === undefined || closed.path === program
    ? ''
    : ` (${inEnglish`${closed.path} is closed to it`})`;
}
