import process from 'node:process';

/** What the operator tells the hub by signals, from the start of the process on. */
export interface Signals {
  /** Aborted by the first SIGTERM or SIGINT, with its name as the reason; a second ends the process. */
  readonly stop: AbortSignal;
  /** Says that from now on there is something to close before the process ends. */
  takeOver(): void;
  /** Calls back for each SIGHUP: once for those that came before, then at each. */
  onHangup(listener: () => void | Promise<void>): void;
}

/**
 * Catches the signals that would otherwise end the process while it starts. To be called first thing:
 * it imports nothing, so that not even the time it takes to load the program is left out.
 */
export function catchSignals(): Signals {
  const stop = new AbortController();
  let isTakenOver = false;
  let isHungUp = false;
  let listener: (() => void | Promise<void>) | undefined;

  function onStop(name: NodeJS.Signals): void {
    if (!isTakenOver) process.exit();
    process.off('SIGTERM', onStop);
    process.off('SIGINT', onStop);
    stop.abort(name);
  }
  process.on('SIGTERM', onStop);
  process.on('SIGINT', onStop);
  process.on('SIGHUP', () => {
    if (listener === undefined) isHungUp = true;
    else void listener();
  });

  return {
    stop: stop.signal,
    takeOver() {
      isTakenOver = true;
    },
    onHangup(called) {
      listener = called;
      if (isHungUp) void called();
    },
  };
}
