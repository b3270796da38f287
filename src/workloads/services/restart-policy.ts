/** How restarts are spaced. */
export interface RestartLimits {
  /** Wait before the second restart in a row; it doubles with each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** A run of this length clears what went before it. */
  readonly stableRunMs: number;
  /** Failures in a row from which the service counts as crash looping. */
  readonly crashLoopFailures: number;
}

export const defaultRestartLimits: RestartLimits = {
  firstDelayMs: 1_000,
  maxDelayMs: 60_000,
  stableRunMs: 60_000,
  crashLoopFailures: 5,
};

export interface RestartDecision {
  readonly delayMs: number;
  /** Ends in a row without a stable run between them, this one included. */
  readonly failures: number;
  readonly isCrashLooping: boolean;
}

/**
 * Decides when a process that ended starts again: at once the first time, then after a growing delay.
 * It never decides against another start.
 */
export function decideRestart(
  end: { readonly failuresBefore: number; readonly ranForMs: number },
  limits: RestartLimits,
  /** Between 0 and 1. */
  random: () => number,
): RestartDecision {
  const failures = end.ranForMs >= limits.stableRunMs ? 1 : end.failuresBefore + 1;
  const isCrashLooping = failures >= limits.crashLoopFailures;
  if (failures === 1) return { delayMs: 0, failures, isCrashLooping };
  // The exponent is bounded: 2 ** 1100 is Infinity, and a crash loop may run for years.
  const growth = 2 ** Math.min(failures - 2, 30);
  const fullDelayMs = Math.min(limits.firstDelayMs * growth, limits.maxDelayMs);
  // Jitter keeps services that failed together from starting together every time.
  return { delayMs: Math.round(fullDelayMs * (0.5 + random() / 2)), failures, isCrashLooping };
}
