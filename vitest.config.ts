import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'plugins/**/*.test.ts', 'test/**/*.test.ts'],
    // Real programs (browsers, databases, child processes) start inside these tests; the limits
    // are there to end a hang, not to time anything.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 30_000, interval: 20 } },
    pool: 'forks',
    // More files at once would only make the programs they start wait for one another.
    maxWorkers: 2,
    maxConcurrency: 2,
    coverage: { provider: 'v8', include: ['src/**', 'plugins/**'] },
  },
});
