import { monotonicMs } from './monotonic-clock.ts';

/** Says what is wrong, in a sentence, or undefined when nothing is. Never rejects. */
export type BoundedCheck = () => Promise<string | undefined>;

/**
 * Asks whether something works. The answer comes within `limitMs`, is shared by all who ask within
 * `freshMs`, and no second check begins while one is under way: what hangs is asked once.
 */
export function createBoundedCheck(options: {
  /** Rejects when it does not work. */
  readonly check: () => Promise<unknown>;
  readonly describe: (error: unknown) => string;
  readonly limitMs: number;
  readonly freshMs: number;
}): BoundedCheck {
  const { check, describe, limitMs, freshMs } = options;
  let last: { readonly problem: string | undefined; readonly atMs: number } | undefined;
  let underWay:
    | { readonly answer: Promise<string | undefined>; readonly sinceMs: number }
    | undefined;

  async function begin(): Promise<string | undefined> {
    let problem: string | undefined;
    try {
      await check();
    } catch (error) {
      problem = describe(error);
    }
    last = { problem, atMs: monotonicMs() };
    underWay = undefined;
    return problem;
  }

  return async () => {
    if (underWay === undefined) {
      if (last !== undefined && monotonicMs() - last.atMs < freshMs) return last.problem;
      underWay = { answer: begin(), sinceMs: monotonicMs() };
    }
    const { answer, sinceMs } = underWay;
    const late = Promise.withResolvers<string>();
    const leftMs = Math.max(0, sinceMs + limitMs - monotonicMs());
    const timer = setTimeout(
      () => late.resolve(`no answer within ${limitMs / 1000} seconds`),
      leftMs,
    );
    try {
      return await Promise.race([answer, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}
