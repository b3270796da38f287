import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { defineConfig } from 'vitest/config';
import FailedTestsReporter from './scripts/failed-tests/reporter.ts';
import { DurationsReporter } from './test/support/durations.ts';
import { LeftOutReporter } from './test/support/left-out.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { foreignFiles, worldFiles } from './test/support/world-files.ts';

// Hundreds of processes load the same packages and the same program, whose types have to be stripped.
env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules', '.cache', 'tests');

const world = worldFiles();
const foreign = 'test/foreign/**';

export default defineConfig({
  test: {
    // `npm test` runs parts and hub, `npm run test:all` the world too, `npm run test:foreign` what is tried at length.
    projects: [
      {
        extends: true,
        test: { name: 'parts', include: ['{src,plugins,scripts}/**/*.test.ts'], exclude: world },
      },
      {
        extends: true,
        test: { name: 'hub', include: ['test/**/*.test.ts'], exclude: [...world, foreign] },
      },
      { extends: true, test: { name: 'world', include: world } },
      {
        extends: true,
        test: {
          name: 'foreign',
          include: foreignFiles(),
          env: { HUB_PROPERTY_FACTOR: env['HUB_PROPERTY_FACTOR'] ?? '10' },
        },
      },
    ],
    reporters: [
      'default',
      new LeftOutReporter(),
      new DurationsReporter(),
      ...(env['FAILED_TESTS'] === undefined ? [] : [new FailedTestsReporter()]),
    ],
    setupFiles: 'test/support/each-file.ts',
    globalSetup: ['test/support/shared-postgres.ts', 'test/support/program.ts'],
    // Real programs (browsers, databases, child processes) start inside these tests; the limits
    // are there to end a hang, not to time anything.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 240_000, interval: 20 } },
    // Node.js runs the sources itself, as it does outside of the tests.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    pool: 'forks',
    // What a file imports is loaded once for all that a worker runs, which is most of what a short one costs.
    isolate: false,
    unstubEnvs: true,
    maxConcurrency: 2,
    // Files wait for timers and the programs they start more than half of their time: with twice as many as there
    // are cores a fifth of those stands idle, with many more the programs wait for one another.
    maxWorkers: Math.min(8, Math.ceil(3.5 * availableParallelism())),
    sequence: { sequencer: LongestFirst },
    coverage: { provider: 'v8', include: ['src/**', 'plugins/**'] },
  },
});
