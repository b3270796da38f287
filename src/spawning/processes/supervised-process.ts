import { type ChildProcess, spawn } from 'node:child_process';
import { geteuid } from 'node:process';
import { Duplex } from 'node:stream';
import { messageOf } from '../../platform/errors.ts';
import { findMover } from '../../platform/files/movable-path.ts';
import {
  identifyChild,
  isSameProcess,
  type ProcessIdentity,
} from '../../platform/process-table/process-table.ts';
import { type Phrase, type Text, text } from '../../platform/texts/text.ts';
import { switchTo } from './as-account.ts';
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
import { beginning, canBeginInShell, isShellName, shellCommand } from './launch-shell.ts';
import type { OutputLog } from './output-log.ts';
import { type EndedGroup, type EndingTools, endProcessGroup } from './process-group.ts';
import { processTagVariable } from './process-tag.ts';
import type { ProcessView } from './process-view.ts';
import { hasCapability, maySwitchAccounts, runsAsRoot, type SystemUser } from './system-user.ts';
import type { WarmPool } from './warm-pool.ts';

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
  readonly refusal?: () => Text | undefined;
  readonly clock?: Clock;
  readonly view?: ProcessView;
  readonly cgroups?: Cgroups;
  /** Of which one may become the process. */
  readonly pool?: WarmPool | undefined;
}

export type StartOutcome =
  | {
      readonly started: true;
      readonly process: SupervisedProcess;
      /** Which limits the kernel holds. */
      readonly held: MadeCgroup['held'];
    }
  | { readonly started: false; readonly reason: Phrase };

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
  // The hub's own account needs no switch, and without the right to it none is possible.
  const user = maySwitchAccounts() ? options.user : undefined;
  const problem =
    explainUserProblem(options.user) ??
    (await explainLaunchProblem({
      command,
      workingDirectory,
      path: environment['PATH'],
      mayLookAt: (place) => isOurs(place, user),
    })) ??
    (await explainClosedProgram(command, user)) ??
    explainEnvironment(command, environment, user);
  if (problem !== undefined) return { started: false, reason: problem };

  try {
    if (user !== undefined && hasCapability('chown')) await output.giveTo(user);
    const { limits } = options;
    const isInShell = user !== undefined || canBeginInShell(environment);
    const cgroup = isInShell ? await cgroups.make(tag, limits) : undefined;
    const { words, ids } = await switchTo(user);
    const [program = '', ...programArguments] = isInShell
      ? shellCommand(cgroup, words, command)
      : [...words, ...command];
    // What lies in a folder of the user is entered under the user's account: root would follow any link, and a hub
    // of another account may not enter. Root enters its own, which may be closed to the user.
    const isOwnFolder =
      user === undefined || (runsAsRoot() && (await isOurs(workingDirectory, user)));
    const refusal = options.refusal?.();
    if (refusal !== undefined) {
      await cgroups.remove(tag);
      return { started: false, reason: refusal };
    }
    const mark = { [processTagVariable]: tag };
    const claimed = isInShell
      ? await options.pool?.claim({
          command,
          environment: { ...environment, ...mark },
          workingDirectory,
          entersFirst: isOwnFolder,
          account: user,
          tag,
          output: output.file,
          cgroups: cgroup?.folders ?? [],
          mustJoin: (cgroup?.held.size ?? 0) > 0,
        })
      : undefined;
    const child =
      claimed ??
      spawn(program, programArguments, {
        ...ids,
        cwd: isOwnFolder ? workingDirectory : '/',
        env: isInShell ? mark : { ...environment, ...mark },
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
    if (claimed === undefined) {
      await startOf(child);
      begin(child, beginning(environment, isOwnFolder ? undefined : workingDirectory));
    }
    // A hub that stops must not wait for servers that outlive it.
    child.unref();
    // Half a kilobyte would stay with the child.
    child.spawnargs.length = 0;
    if (identity === undefined)
      return { started: false, reason: text`it ended while it was started` };
    return {
      started: true,
      process: supervise({ identity, ended, tag, output, clock, view, cgroups }),
      held: cgroup?.held ?? new Set(),
    };
  } catch (thrown) {
    await cgroups.remove(tag);
    return { started: false, reason: explainSpawnError(thrown, command, options.user) };
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
function begin({ stdio }: ChildProcess, beginning: string): void {
  const gate = stdio[3];
  if (!(gate instanceof Duplex)) return;
  // It may have ended by now, which its exit tells.
  gate.on('error', () => undefined);
  gate.end(beginning, () => gate.destroy());
  // A socket of four kilobytes would stay with the child.
  (stdio as unknown[]).length = 3;
}

/** Whether the hub may look at a place that its servers' accounts may not all see, without being led elsewhere. */
async function isOurs(place: string, user: SystemUser | undefined): Promise<boolean> {
  return user === undefined || (await findMover(place).catch(() => null)) === undefined;
}

/** Says that an account may not run a program, where the hub can tell. */
async function explainClosedProgram(
  [program = '']: readonly string[],
  user: SystemUser | undefined,
): Promise<Text | undefined> {
  if (user === undefined || !program.includes('/') || !(await isOurs(program, user)))
    return undefined;
  const closed = await findClosedPlace(program, user);
  if (closed === undefined) return undefined;
  return closed.path === program
    ? text`permission denied for user ${user.name}: ${program}`
    : text`permission denied for user ${user.name}: ${program} (${closed.path} is closed to it)`;
}

/** Linux, execve(2): one string, with its end. */
const maxStringBytes = 128 * 1024;

function explainEnvironment(
  [program = '']: readonly string[],
  environment: Readonly<Record<string, string>>,
  user: SystemUser | undefined,
): Text | undefined {
  const variables = Object.entries(environment);
  if (variables.some(([, value]) => value.includes('\0')))
    return text`the environment holds a NUL character`;
  if (variables.some((pair) => Buffer.byteLength(pair.join('=')) >= maxStringBytes))
    return text`arguments and environment of ${program} are too long`;
  const odd = user && variables.find(([name]) => !isShellName(name));
  return (
    odd && text`the variable ${odd[0]} has a name that a shell cannot hand on to user ${user.name}`
  );
}

function explainUserProblem(user: SystemUser | undefined): Text | undefined {
  if (user === undefined || maySwitchAccounts() || user.userId === geteuid?.()) return undefined;
  return text`running as user ${user.name} needs a hub that runs as root or with CAP_SETUID and CAP_SETGID`;
}

function explainSpawnError(
  thrown: unknown,
  [program = '']: readonly string[],
  user: SystemUser | undefined,
): Text {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  switch (code) {
    case 'ENOENT':
      return text`${program} or the interpreter named in its first line does not exist`;
    case 'EACCES':
      return text`permission denied: ${program}`;
    case 'EPERM':
      return user === undefined
        ? text`the hub may not switch to another user`
        : text`the hub may not run programs as user ${user.name}`;
    case 'E2BIG':
      return text`arguments and environment of ${program} are too long`;
    case 'EAGAIN':
      return user === undefined
        ? text`too many processes`
        : text`too many processes for user ${user.name}`;
    default:
      return text`${program} cannot be started: ${messageOf(thrown)}`;
  }
}
