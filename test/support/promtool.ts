import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { pathOf } from './requires.ts';

/** Runs Prometheus' own tool in a folder; `input` is its standard input. */
export async function promtool(
  args: readonly string[],
  options: { readonly directory?: string; readonly input?: string } = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(pathOf('promtool'), args, {
    cwd: options.directory,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(options.input ?? '');
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, output: stdout + stderr };
}
