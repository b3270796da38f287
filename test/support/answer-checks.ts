/** The process of `useCheckProcess`: runs `hub check` in each folder that it is told, one after another. */
import process from 'node:process';
import { runCli } from '../../src/entrances/cli/run-cli.ts';

// Whatever a plugin left open.
process.once('disconnect', () => process.exit());
async function check(directory: string): Promise<void> {
  let [stdout, stderr] = ['', ''];
  const code = await runCli(['check'], {
    stdin: process.stdin,
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    env: process.env,
    directory,
    untilInterrupted: () => new AbortController().signal,
    reportFailure(description) {
      stderr += `${description}\n`;
    },
    openLog: () => Promise.resolve(),
    startHub: () => Promise.reject(new Error('a check starts no hub')),
    startGateway: () => Promise.reject(new Error('a check starts no gateway')),
    openOperations: () => Promise.reject(new Error('a check performs nothing')),
  });
  process.send?.({ code, stdout, stderr });
}

process.on('message', (directory: string) => void check(directory));
