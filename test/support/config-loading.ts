import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import type { Config } from '../../src/platform/config/config.ts';
import { type LoadConfigOptions, loadConfig } from '../../src/platform/config/load.ts';
import { ConfigError, type ConfigProblem } from '../../src/platform/errors.ts';

/** A cookie key that nothing is to be said against. */
export const strongKey = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

/** Writes and loads configuration files, each test in a folder of its own. */
export function useConfigLoading() {
  const root = mkdtempSync(join(tmpdir(), 'hub-config-'));
  afterAll(() => rmSync(root, { recursive: true }));

  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(root, 'case-'));
  });

  async function load(
    content: unknown,
    options: Partial<LoadConfigOptions> = {},
  ): Promise<{ config: Config; warnings: ConfigProblem[] }> {
    const file = join(directory, 'hub.config.json');
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    const warnings: ConfigProblem[] = [];
    const onWarning = (warning: ConfigProblem) => warnings.push(warning);
    return { config: await loadConfig({ file, env: {}, onWarning, ...options }), warnings };
  }

  async function problemsOf(
    content: unknown,
    options: Partial<LoadConfigOptions> = {},
  ): Promise<string[]> {
    try {
      await load(content, options);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map(({ path, message }) => `${path}: ${message}`);
    }
    return [];
  }

  return { directory: () => directory, load, problemsOf };
}

/** A configuration, as JSON or text, and the problems it is refused with, in order. */
export type RefusedConfig = readonly [
  name: string,
  content: unknown,
  ...expected: (string | RegExp)[],
];

/** Checks that each configuration is refused with exactly these problems. */
export function declareRefusals(rows: readonly RefusedConfig[]): void {
  const { problemsOf } = useConfigLoading();
  test.for(rows)('%s', async ([, content, ...expected]) => {
    const problems = await problemsOf(content, { env: { EMPTY: '' } });
    expect(problems).toHaveLength(expected.length);
    for (const [index, line] of expected.entries()) {
      if (typeof line === 'string') expect(problems[index]).toBe(line);
      else expect(problems[index]).toMatch(line);
    }
  });
}

/** A configuration with one service of these fields. */
export const withService = (fields: object) => ({
  Hub: { services: [{ name: 'wiki', ...fields }] },
});
