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
  /** Errors that belong to no test file, such as a test process that crashed. */
  readonly unhandledErrors: readonly string[];
  /** Whether all test files ran to their end. */
  readonly isFinished: boolean;
}

export interface FailedFile {
  /** Relative to the project. */
  readonly path: string;
  readonly failures: readonly { readonly test: string; readonly error: string }[];
}

export const maxFiles = 8;

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

/** A run after all its files that failed ran a second time, and those of its failures that did not come again. */
export function afterSecondRun(
  first: FailedRun,
  second: FailedRun,
): { readonly run: FailedRun; readonly flaky: readonly FailedFile[] } {
  const { passed, failed, skipped } = first.counts;
  const isOfFile = (test: string) => first.files.some(({ path }) => test.startsWith(`${path}: `));
  const leftOut = [...first.leftOut.filter((test) => !isOfFile(test)), ...second.leftOut];
  const counts = { failed: second.counts.failed, skipped: leftOut.length };
  const cameAgain = (path: string, test: string) =>
    second.files.some(
      (file) => file.path === path && file.failures.some((failure) => failure.test === test),
    );
  return {
    run: {
      ...second,
      leftOut,
      counts: { ...counts, passed: passed + failed + skipped - counts.failed - counts.skipped },
    },
    flaky: first.files.map(({ path, failures }) => ({
      path,
      failures: failures.filter(({ test }) => !cameAgain(path, test)),
    })),
  };
}

/** The line that a pipeline ends with, over all runs. */
export function totalsLine(runs: readonly FailedRun[]): string {
  const sum = (name: keyof TestCounts) => runs.reduce((all, { counts }) => all + counts[name], 0);
  return `${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`;
}

/** How tests failed, each marked: FLAKY those that passed when they ran alone. */
export function failureLines(mark: 'FLAKY' | 'FAILED', files: readonly FailedFile[]): string[] {
  return files.flatMap(({ path, failures }) =>
    failures.flatMap(({ test, error }) => [`${mark}: ${path}: ${test}`, ...indented(error)]),
  );
}

/** What is wrong with a run, where a pipeline that is cut short by its reader still shows it. */
export function problemLines({ files, unhandledErrors }: FailedRun): string[] {
  return [
    ...failureLines('FAILED', files),
    ...unhandledErrors.flatMap((error) => ['FAILED: outside of the tests', ...indented(error)]),
  ];
}

function indented(lines: string): string[] {
  return lines.split('\n').map((line) => `    ${line}`);
}
