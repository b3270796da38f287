import { writeFileSync } from 'node:fs';
import { env } from 'node:process';
import type {
  Reporter,
  SerializedError,
  TestModule,
  TestRunEndReason,
  TestState,
} from 'vitest/node';
import type { FailedFile, FailedRun } from './failed-run.ts';

/** For `vitest --reporter`: writes what failed to the file that FAILED_TESTS names, as a FailedRun. */
export default class FailedTestsReporter implements Reporter {
  readonly #file = env['FAILED_TESTS'];

  constructor() {
    // Not for the programs that the tests start.
    delete env['FAILED_TESTS'];
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    unhandledErrors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    if (this.#file === undefined) throw new Error('FAILED_TESTS must name a file');
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: TestState) =>
      tests.filter((test) => test.result().state === state).length;
    // Those in a suite that is left out within another one stay pending.
    const leftOut = tests.filter((test) => !/^(?:passed|failed)$/.test(test.result().state));
    const run: FailedRun = {
      counts: { passed: count('passed'), failed: count('failed'), skipped: leftOut.length },
      leftOut: leftOut.map((test) => `${test.module.relativeModuleId}: ${test.fullName}`),
      files: modules.flatMap((module) => {
        const outside = unhandledErrors.filter((error) => originOf(error) === module.moduleId);
        return module.ok() && outside.length === 0 ? [] : failedFile(module, outside);
      }),
      unhandledErrors: unhandledErrors
        .filter((error) => !modules.some(({ moduleId }) => moduleId === originOf(error)))
        .map(textOf),
      isFinished:
        reason !== 'interrupted' &&
        modules.every((module) => !/^(?:queued|pending)$/.test(module.state())),
    };
    writeFileSync(this.#file, JSON.stringify(run));
  }
}

/** The test file that was running when an error came that nothing caught, where Vitest knows it. */
function originOf(error: SerializedError): string | undefined {
  return error['VITEST_TEST_PATH'] as string | undefined;
}

function failedFile(module: TestModule, outside: readonly SerializedError[]): FailedFile {
  const failures = [
    { name: '(the file)', errors: module.errors() },
    { name: '(outside of its tests)', errors: outside },
    // A hook that failed.
    ...[...module.children.allSuites()].map((suite) => ({
      name: suite.fullName,
      errors: suite.errors(),
    })),
    ...[...module.children.allTests('failed')].map((test) => ({
      name: test.fullName,
      errors: test.result().errors ?? [],
    })),
  ];
  return {
    path: module.relativeModuleId,
    failures: failures
      .filter(({ errors }) => errors.length > 0)
      .map(({ name, errors }) => ({ test: name, error: errors.map(textOf).join('\n') })),
  };
}

function textOf({ stack, message }: SerializedError): string {
  return stack ?? message;
}
