import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { kill } from 'node:process';
import type { Logger } from 'pino';

/** The running app and everything it started in its process group. */
export interface AppProcess {
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  /** Exit code of the app; 128 and the number for one that a signal ended, as shells say it. */
  readonly exited: Promise<number>;
  /** Passes a signal on to the whole group; one that asks to end is enforced after a while. */
  signal(signal: NodeJS.Signals): void;
  /** Ends whatever is left of the group, at once. */
  kill(): void;
}

/** Those that ask a program to end. */
export const endingSignals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'];

/** Starts the app in a process group of its own; its output goes where this program's goes. */
export function startApp(options: {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly killAfterMs: number;
  readonly log: Logger;
}): AppProcess {
  const { command, environment, killAfterMs, log } = options;
  const [program = '', ...programArguments] = command;
  const child = spawn(program, programArguments, {
    env: environment,
    stdio: 'inherit',
    detached: true,
  });
  let killTimer: NodeJS.Timeout | undefined;

  function signalGroup(signal: NodeJS.Signals): void {
    if (child.pid === undefined) return;
    try {
      kill(-child.pid, signal);
    } catch {
      // Nothing is left of the group.
    }
  }

  const { promise: exited, resolve } = Promise.withResolvers<number>();
  child.once('error', (error: NodeJS.ErrnoException) => {
    if (child.pid !== undefined) return;
    log.error({ err: error, program }, 'app could not be started');
    resolve(error.code === 'ENOENT' ? 127 : 126);
  });
  child.once('exit', (code, signal) => {
    clearTimeout(killTimer);
    signalGroup('SIGKILL');
    resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
  });

  return {
    pid: child.pid,
    exited,
    kill: () => signalGroup('SIGKILL'),
    signal(signal) {
      signalGroup(signal);
      if (!endingSignals.includes(signal) || killTimer !== undefined) return;
      killTimer = setTimeout(() => {
        log.warn({ killAfterMs }, 'app does not exit, killing it');
        signalGroup('SIGKILL');
      }, killAfterMs);
    },
  };
}
