import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import type { Reporter, TestModule } from 'vitest/node';
import type { TestNeed } from './requires.ts';

/** Says once, at the end of a run, which tests were left out and what they would have needed. */
export class LeftOutReporter implements Reporter {
  #directory: string | undefined;

  onInit(): void {
    if (env['HUB_TEST_NEEDS'] !== undefined) return;
    this.#directory = mkdtempSync(join(tmpdir(), 'hub-test-needs-'));
    env['HUB_TEST_NEEDS'] = join(this.#directory, 'needs');
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const leftOut = new Map(
      modules.map((module) => [
        module.relativeModuleId,
        [...module.children.allTests('skipped')].length,
      ]),
    );
    for (const line of leftOutLines(leftOut, readNeeds(env['HUB_TEST_NEEDS'] ?? ''))) {
      console.log(line);
    }
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true });
  }
}

function readNeeds(file: string): TestNeed[] {
  try {
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line) as TestNeed);
  } catch {
    // No test file has asked for anything.
    return [];
  }
}

/** `leftOut` has the number of tests that did not run, by file. */
export function leftOutLines(
  leftOut: ReadonlyMap<string, number>,
  needs: readonly TestNeed[],
): string[] {
  const affected = [...leftOut].filter(([, count]) => count > 0);
  if (affected.length === 0) return [];
  const missing = needs.filter(({ isThere }) => !isThere);
  const byNeed = Map.groupBy(
    affected.flatMap(([file, count]) => {
      const ofFile = missing.filter((need) => need.file === file).map(({ need }) => need);
      const needed: (string | undefined)[] = ofFile.length === 0 ? [undefined] : ofFile;
      return [...new Set(needed)].map((need) => ({ file, count, need }));
    }),
    ({ need }) => need,
  );
  const total = affected.reduce((sum, [, count]) => sum + count, 0);
  const line = (need: string | undefined, files: readonly { file: string; count: number }[]) => {
    const names = files.map(({ file, count }) => `${file} (${count})`).join(', ');
    return need === undefined ? `  by choice: ${names}` : `  without ${need}: ${names}`;
  };
  return [
    `${total} ${total === 1 ? 'test was' : 'tests were'} left out:`,
    ...[...byNeed].map(([need, files]) => line(need, files)).toSorted(),
  ];
}
