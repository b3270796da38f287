import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

// Hundreds of processes load the same packages and the same program, whose types have to be stripped.
env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules', '.cache', 'tests');

export default defineConfig({
  test: {
    include: ['{src,plugins,test}/**/*.test.ts'],
    reporters: ['default', 'test/support/left-out.ts'],
    setupFiles: 'test/support/each-file.ts',
    globalSetup: 'test/support/shared-postgres.ts',
    // Real programs (browsers, databases, child processes) start inside these tests; the limits
    // are there to end a hang, not to time anything.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 30_000, interval: 20 } },
    pool: 'forks',
    // What a file imports is loaded once for all that a worker runs, which is most of what a short one costs.
    isolate: false,
    unstubEnvs: true,
    maxConcurrency: 2,
    // Files wait for the programs they start more than half of their time: with twice as many as there are
    // cores a fifth of those stands idle, with many more the programs wait for one another.
    maxWorkers: Math.min(8, Math.ceil(2.5 * availableParallelism())),
    sequence: { sequencer: LongestFirst },
    coverage: { provider: 'v8', include: ['src/**', 'plugins/**'] },
  },
});
