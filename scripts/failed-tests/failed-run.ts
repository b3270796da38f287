/** How many tests ended how. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** What failed in a run of tests. */
export interface FailedRun {
  readonly counts: TestCounts;
  /** What was left out, each with its file. */
  readonly leftOut: readonly string[];
  readonly files: readonly FailedFile[];
  /** Errors that belong to no test, such as a test process that crashed. */
  readonly unhandledErrors: readonly string[];
  /** Whether all test files ran to their end. */
  readonly isFinished: boolean;
}

export interface FailedFile {
  /** Relative to the project. */
  readonly path: string;
  readonly failures: readonly { readonly test: string; readonly error: string }[];
}

const maxFiles = 3;

/**
 * Why the files that failed do not deserve a second run, alone on the machine; undefined when they do:
 * few, and nothing else is wrong.
 */
export function refusalOf({ files, unhandledErrors, isFinished }: FailedRun): string | undefined {
  if (!isFinished) return 'The run was cut short.';
  if (unhandledErrors.length > 0) {
    return `An error outside of the tests: ${unhandledErrors.join('\n')}`;
  }
  if (files.length === 0) return 'The run failed, but no test did.';
  if (files.length > maxFiles) {
    return `${files.length} test files failed; at most ${maxFiles} are tried again.`;
  }
  return undefined;
}

/** The same run when all that failed has passed at the second time. */
export function withoutFailures({
  counts: { passed, failed, skipped },
  ...run
}: FailedRun): FailedRun {
  return { ...run, files: [], counts: { passed: passed + failed, failed: 0, skipped } };
}

/** The line that a pipeline ends with, over all runs. */
export function totalsLine(runs: readonly FailedRun[]): string {
  const sum = (name: keyof TestCounts) => runs.reduce((all, { counts }) => all + counts[name], 0);
  return `${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`;
}

/** What is said of tests that passed when they ran alone, with how they failed before. */
export function flakyLines(files: readonly FailedFile[]): string[] {
  return files.flatMap(({ path, failures }) =>
    failures.flatMap(({ test, error }) => [
      `FLAKY: ${path}: ${test}`,
      ...error.split('\n').map((line) => `    ${line}`),
    ]),
  );
}
