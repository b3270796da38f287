import { monotonicMs } from '../../concurrency/monotonic-clock.ts';
import { createLineSplitter } from '../../processes/output-lines.ts';
import type { Engine } from './engine.ts';
import { createFrameReader } from './frames.ts';

/** Bytes of output a second that are read of one container; the engine keeps the rest until then. */
const mostBytesPerSecond = 1024 * 1024;

/**
 * Passes on the lines a container prints until it has ended, the signal aborts or the engine breaks off.
 * `tail` is how many of the lines it has printed already. Rejects when the engine cannot tell them.
 */
export async function followOutput(
  engine: Engine,
  container: string,
  {
    tail,
    signal,
    onLine,
  }: {
    readonly tail: number | 'all';
    readonly signal: AbortSignal;
    readonly onLine: (line: string, stream: 'stdout' | 'stderr') => void;
  },
): Promise<void> {
  const output = await engine.call(
    (docker) =>
      docker.getContainer(container).logs({
        follow: true,
        stdout: true,
        stderr: true,
        // The engine takes a negative number for all lines.
        tail: tail === 'all' ? -1 : tail,
        abortSignal: signal,
      }),
    { signal, isStream: true },
  );
  const splitters = { stdout: createLineSplitter(), stderr: createLineSplitter() };
  const frames = createFrameReader((content, stream) => {
    for (const line of splitters[stream].push(content)) onLine(line, stream);
  });

  let windowEndsMs = 0;
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    output.on('data', (chunk: Buffer) => {
      frames.push(chunk);
      const nowMs = monotonicMs();
      if (nowMs >= windowEndsMs) {
        windowEndsMs = nowMs + 1_000;
        bytes = 0;
      }
      bytes += chunk.length;
      if (bytes < mostBytesPerSecond) return;
      output.pause();
      timer = setTimeout(() => output.resume(), windowEndsMs - nowMs).unref();
    });
    output.on('error', () => resolve());
    output.on('close', () => resolve());
    output.on('end', () => resolve());
  });
  clearTimeout(timer);
  for (const stream of ['stdout', 'stderr'] as const) {
    for (const line of splitters[stream].end()) onLine(line, stream);
  }
}
