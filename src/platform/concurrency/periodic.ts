/** Work that is done periodically. Disposing of it stops it, and waits for a run under way. */
export interface Periodic extends Disposable, AsyncDisposable {
  /** Runs the work now, or joins the run under way. Never throws. */
  run(): Promise<void>;
}

/**
 * Does work every `intervalMs`, without keeping the process alive for it. A run that lasts longer than the
 * interval is not joined by a second one; after a failed run the next one comes as usual.
 */
export function createPeriodic(options: {
  readonly intervalMs: number;
  readonly work: () => void | Promise<void>;
  readonly onError: (error: unknown) => void;
}): Periodic {
  const { intervalMs, work, onError } = options;
  let running: Promise<void> | undefined;

  async function runOnce(): Promise<void> {
    try {
      await work();
    } catch (error) {
      onError(error);
    } finally {
      running = undefined;
    }
  }

  const run = (): Promise<void> => {
    // Assigned before the work begins, so that work without a wait does not leave it behind.
    running ??= Promise.resolve().then(runOnce);
    return running;
  };

  const timer = setInterval(() => void run(), intervalMs);
  timer.unref();

  return {
    run,
    [Symbol.dispose]: () => clearInterval(timer),
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await running;
    },
  };
}
