import { env } from 'node:process';

/** How many times as often as in `npm test` a property is tried: `npm run test:foreign` sets it. */
const factor = Number(env['HUB_PROPERTY_FACTOR'] ?? 1);
const seed = Number(env['HUB_PROPERTY_SEED'] ?? 5);

/** For `assert` of fast-check: the same inputs each time, so many of them in `npm test`. */
export function runs(count: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: Math.ceil(count * factor), seed };
}
