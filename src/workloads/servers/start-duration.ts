/** How long a start takes, without the time in a queue of its engine. */
export interface StartDuration {
  onQueued(isQueued: boolean): void;
  ms(): number;
}

export function createStartDuration(now = () => performance.now()): StartDuration {
  const startedAtMs = now();
  let queuedMs = 0;
  let queuedSinceMs: number | undefined;
  const waitingMs = () => (queuedSinceMs === undefined ? 0 : now() - queuedSinceMs);

  return {
    onQueued(isQueued) {
      queuedMs += waitingMs();
      queuedSinceMs = isQueued ? now() : undefined;
    },
    ms: () => now() - startedAtMs - queuedMs - waitingMs(),
  };
}
