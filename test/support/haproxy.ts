import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takesConnections } from './raw-request.ts';
import { pathOf, requires } from './requires.ts';
import { until } from './test-hub.ts';

/** Whether HAProxy is installed; see requires. */
export function hasHaproxy(): boolean {
  return requires('haproxy');
}

/** Starts HAProxy with a configuration, and waits until all of the ports that it is to take answer. */
export async function startHaproxy(
  configuration: string,
  ports: readonly number[],
): Promise<AsyncDisposable> {
  const directory = mkdtempSync(join(tmpdir(), 'hub-haproxy-'));
  const file = join(directory, 'haproxy.cfg');
  writeFileSync(file, configuration);
  const child = spawn(pathOf('haproxy'), ['-db', '-f', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4_000);
    });
  }
  const exited = once(child, 'exit');
  const endWithProcess = () => child.kill('SIGKILL');
  process.once('exit', endWithProcess);
  for (const port of ports) {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`haproxy ended: ${output}`);
      return await takesConnections(port);
    }, `haproxy listens on port ${port}`);
  }
  return {
    async [Symbol.asyncDispose]() {
      process.off('exit', endWithProcess);
      child.kill('SIGTERM');
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
