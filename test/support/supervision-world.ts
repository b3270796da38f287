import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { afterEach, beforeEach, vi } from 'vitest';
import { TextError } from '../../src/platform/errors.ts';
import {
  type OutputLog,
  type OutputLogOptions,
  openOutputLog,
} from '../../src/spawning/processes/output-log.ts';
import {
  type StartOptions,
  type SupervisedProcess,
  startProcess,
} from '../../src/spawning/processes/supervised-process.ts';

/** A folder with an output log for each test of the file, and processes that end with the test. */
export function useSupervision() {
  const started: SupervisedProcess[] = [];
  let directory: string;
  let logFile: string;
  let output: OutputLog;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'supervised-'));
    logFile = join(directory, 'app.log');
    output = await openOutputLog({ file: logFile });
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((each) => each.stop({ graceMs: 0 })));
    await output[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  function options(command: readonly string[], extra: Partial<StartOptions> = {}): StartOptions {
    const environment = { PATH: env['PATH'] ?? '' };
    return { command, environment, workingDirectory: directory, output, tag: logFile, ...extra };
  }

  return {
    get directory() {
      return directory;
    },
    get logFile() {
      return logFile;
    },
    get output() {
      return output;
    },
    options,

    async start(
      command: readonly string[],
      extra: Partial<StartOptions> = {},
    ): Promise<SupervisedProcess> {
      const outcome = await startProcess(options(command, extra));
      if (!outcome.started) throw new TextError(outcome.reason);
      started.push(outcome.process);
      return outcome.process;
    },

    /** Opens the log again; `meanwhile` runs while it is closed. */
    async reopenOutput(
      extra: Partial<OutputLogOptions> = {},
      meanwhile: () => Promise<void> = async () => {},
    ): Promise<void> {
      await output[Symbol.asyncDispose]();
      await meanwhile();
      output = await openOutputLog({ file: logFile, ...extra });
    },

    /** Waits for a line of output. */
    lineWith(text: string): Promise<string> {
      return vi.waitFor(
        async () => {
          await output.flush();
          const line = output.tail().findLast((each) => each.includes(text));
          if (line === undefined) throw new Error(`no line with ${text}`);
          return line;
        },
        { timeout: 240_000, interval: 20 },
      );
    },
  };
}
