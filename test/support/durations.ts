import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

const file = join(
  import.meta.dirname,
  ...['..', '..', 'node_modules', '.cache', 'test-durations.json'],
);

/** How long each test file took when it last ran, in ms, by its path in the project. */
export type Durations = Readonly<Record<string, number>>;

export function readDurations(): Durations {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Durations;
  } catch {
    // None has run here yet.
    return {};
  }
}

/** Keeps what `readDurations` gives. */
export class DurationsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const seen = modules
      // What was left out would have taken longer.
      .filter((module) => [...module.children.allTests('skipped')].length === 0)
      .map((module) => [module.relativeModuleId, Math.round(module.diagnostic().duration)]);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ ...readDurations(), ...Object.fromEntries(seen) }));
  }
}
