import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';
import type { SpawnerHost } from '../../plugin/host/spawner.ts';
import type { Account } from './as-account.ts';
import { createLineSplitter } from './output-lines.ts';
import { processTagVariable } from './process-tag.ts';
import { maySwitchAccounts, runsAsRoot } from './system-user.ts';
import { maxTagBytes, warmProgram } from './warm-program.ts';

/** A Python program of which some processes wait for their user, with what it imports already there. */
export interface WarmProgram {
  /** Path of the script, as commands begin with it. */
  readonly program: string;
  /** Path of the Python that runs it. */
  readonly python: string;
  readonly modules: readonly string[];
  /** How many wait. */
  readonly count: number;
}

/** What a waiting process becomes. */
export interface Identity {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  /** Whether it enters that before it changes the account. */
  readonly entersFirst: boolean;
  /** Undefined for that of the hub. */
  readonly account: Account | undefined;
  readonly tag: string;
  /** File for what it writes. */
  readonly output: string;
  /** Folders of cgroups, and whether it must not begin outside of them. */
  readonly cgroups: readonly string[];
  readonly mustJoin: boolean;
}

/** Processes that wait for a user. Each serves one claim and no second one; all end with the hub. */
export interface WarmPool extends Disposable {
  /** One that has begun as this; undefined where none waits for the program, or the one that did has failed. */
  claim(identity: Identity): Promise<ChildProcess | undefined>;
}

interface Member {
  readonly child: ChildProcess;
  readonly gate: Socket;
}

/** A started server is given the processors for so long before the next one imports. */
const defaultRefillDelayMs = 2_000;
const retryDelayMs = 60_000;
const defaultClaimPatienceMs = 3_000;

export function createWarmPool(deps: {
  readonly programs: readonly WarmProgram[];
  readonly log: Pick<SpawnerHost['log'], 'debug' | 'warn'>;
  readonly refillDelayMs?: number;
  readonly claimPatienceMs?: number;
}): WarmPool {
  const { log, claimPatienceMs = defaultClaimPatienceMs } = deps;
  let isClosed = false;
  // An account that is not root keeps its capabilities when it changes: such a hub has only new processes.
  const isAllowed = runsAsRoot() || !maySwitchAccounts();
  const pools = isAllowed ? deps.programs.map(createPool) : [];
  if (!isAllowed && deps.programs.length > 0)
    log.warn({}, 'no warm processes, hub switches accounts without being root');

  function createPool(warm: WarmProgram) {
    const waiting = new Set<Member>();
    let timer: NodeJS.Timeout | undefined;
    let isFilling = false;

    function refillAfter(delayMs: number): void {
      if (timer !== undefined || isClosed) return;
      timer = setTimeout(() => {
        timer = undefined;
        // One taken meanwhile is replaced by the same run; a second run would make one too many.
        if (!isFilling) void refill();
      }, delayMs).unref();
    }

    async function refill(): Promise<void> {
      isFilling = true;
      while (!isClosed && waiting.size < warm.count) {
        const member = begin(warm);
        const answer = await answerOf(member);
        if (answer !== 'ready') {
          end(member);
          log.warn({ program: warm.program, reason: answer }, 'warm process failed');
          refillAfter(retryDelayMs);
          break;
        }
        if (isClosed) end(member);
        else waiting.add(member);
        log.debug({ program: warm.program, pid: member.child.pid }, 'warm process waits');
        member.child.once('exit', () => {
          if (waiting.delete(member)) refillAfter(retryDelayMs);
        });
      }
      isFilling = false;
    }

    refillAfter(0);
    return {
      program: warm.program,
      waiting,
      take(): Member | undefined {
        const [member] = waiting;
        if (member !== undefined) waiting.delete(member);
        refillAfter(deps.refillDelayMs ?? defaultRefillDelayMs);
        return member;
      },
      close: () => clearTimeout(timer),
    };
  }

  return {
    async claim(identity) {
      const member = pools.find(({ program }) => program === identity.command[0])?.take();
      if (member === undefined) return undefined;
      member.gate.write(`${JSON.stringify(identity)}\n`);
      const answer = await answerOf(member, claimPatienceMs);
      if (answer === 'begun') {
        member.gate.destroy();
        return member.child;
      }
      end(member);
      log.warn({ program: identity.command[0], reason: answer }, 'warm process lost at its claim');
      return undefined;
    },
    [Symbol.dispose]() {
      isClosed = true;
      for (const { waiting, close } of pools) {
        close();
        for (const member of waiting) end(member);
        waiting.clear();
      }
    },
  };
}

function begin({ python, modules }: WarmProgram): Member {
  const child = spawn(python, ['-I', '-c', warmProgram, ...modules], {
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', [processTagVariable]: 'x'.repeat(maxTagBytes) },
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const gate = child.stdio[3] instanceof Socket ? child.stdio[3] : new Socket();
  child.on('error', () => undefined);
  gate.on('error', () => undefined);
  child.unref();
  gate.unref();
  return { child, gate };
}

/** What it says next, as a line of output; empty where it ends without a word, or says nothing for too long. */
async function answerOf({ gate }: Member, patienceMs = 120_000): Promise<string> {
  if (gate.closed) return '';
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), patienceMs).unref();
  const { signal } = stop;
  try {
    // Not its exit, which may be seen before its last words.
    const [first] = await Promise.race([
      once(gate, 'data', { signal }),
      once(gate, 'close', { signal }),
    ]);
    if (!Buffer.isBuffer(first)) return '';
    const lines = createLineSplitter();
    const [line = ''] = [...lines.push(first), ...lines.end()];
    return line;
  } catch {
    return '';
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

/** It may be in the middle of anything: as long as it is not reaped, its pid is its own. */
function end({ child, gate }: Member): void {
  gate.destroy();
  child.kill('SIGKILL');
}
