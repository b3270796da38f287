import { runInNewContext } from 'node:vm';

/** So long that what costs the square of it takes hours, and what costs a pass over it no time. */
export const longInput = 1_000_000;

/** Runs what is given an input of `longInput` characters, and throws where it does not come to its end. */
export function runInLinearTime<T>(work: () => T): T {
  return runInNewContext('work()', { work }, { timeout: 60_000 }) as T;
}
