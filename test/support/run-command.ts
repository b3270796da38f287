import { PassThrough } from 'node:stream';
import { openOperations } from '../../src/composition/command-operations.ts';
import type { StartHub } from '../../src/entrances/cli/cli-io.ts';
import { runCli } from '../../src/entrances/cli/run-cli.ts';

/** What is there beside the arguments. */
export interface Terminal {
  /** What comes through a pipe. */
  readonly piped?: string;
  /** What a person types at a terminal. */
  readonly typed?: string;
  readonly startHub?: StartHub;
  readonly env?: NodeJS.ProcessEnv;
  /** What happens while the command waits; it does not wait by the clock then. */
  readonly pause?: (stderr: string) => Promise<unknown>;
}

/** Runs one command of `hub` in a folder with a configuration, without a process of its own. */
export async function runCommand(
  directory: string,
  args: readonly string[],
  { piped, typed, startHub, env = {}, pause }: Terminal = {},
) {
  const output = { stdout: '', stderr: '' };
  const rawModes: boolean[] = [];
  const stdin = Object.assign(new PassThrough(), {
    isTTY: typed !== undefined,
    setRawMode: (isRaw: boolean) => rawModes.push(isRaw),
  });
  stdin.end(piped ?? typed ?? '');
  const exitCode = await runCli(args, {
    stdin,
    stdout: { write: (text: string) => (output.stdout += text) },
    stderr: { write: (text: string) => (output.stderr += text) },
    env,
    ...(pause && { pause: () => pause(output.stderr) }),
    directory,
    untilInterrupted: () => new AbortController().signal,
    reportFailure(description) {
      output.stderr += `${description}\n`;
    },
    openLog: () => Promise.resolve(),
    startHub: startHub ?? (() => Promise.reject(new Error('the hub must not start'))),
    startGateway: () => Promise.reject(new Error('no gateway is started here')),
    openOperations,
  });
  return { exitCode, rawModes, ...output };
}
