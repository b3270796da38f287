import type { SpawnPhase, SpawnProgress } from '../../plugin/host/spawn-request.ts';

/** The time a start has until the server has an address, by the phases its spawner tells (`SpawnPhase`). */
export interface StartClock extends Disposable {
  /** Aborts when the time is over. */
  readonly signal: AbortSignal;
  readonly phase: SpawnPhase | undefined;
  onProgress(event: SpawnProgress): void;
}

export function createStartClock(timeoutMs: number): StartClock {
  const over = new AbortController();
  let phase: SpawnPhase | undefined;
  let timer: NodeJS.Timeout | undefined;

  function stop(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  function begin(): void {
    stop();
    timer = setTimeout(() => over.abort(), Math.min(timeoutMs, maxTimerMs));
    timer.unref();
  }

  begin();
  return {
    signal: over.signal,
    get phase() {
      return phase;
    },
    onProgress(event) {
      if (event.phase === undefined) return;
      const isNew = event.phase !== phase;
      phase = event.phase;
      if (phase === 'pending') stop();
      else if (isNew || phase !== 'starting') begin();
    },
    [Symbol.dispose]: stop,
  };
}

/** Beyond it a timer fires at once (Node.js, `setTimeout`). */
const maxTimerMs = 2 ** 31 - 1;
