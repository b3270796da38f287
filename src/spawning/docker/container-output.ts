import { createLineSplitter } from '../processes/output-lines.ts';
import type { Engine } from './engine.ts';
import { createFrameReader } from './frames.ts';

/** Bytes of output a second that are read of one container; the engine keeps the rest until then. */
const maxBytesPerSecond = 1024 * 1024;
const lastLines = 50;

type OnLine = (line: string, stream: 'stdout' | 'stderr') => void;

/**
 * Passes on the lines a container prints, from the first one until it has ended, the signal aborts or the engine
 * breaks off. Rejects when the engine cannot tell them.
 */
export async function followOutput(
  engine: Engine,
  container: string,
  { signal, onLine }: { readonly signal: AbortSignal; readonly onLine: OnLine },
): Promise<void> {
  const output = await engine.call(
    (docker) =>
      docker.getContainer(container).logs({
        follow: true,
        stdout: true,
        stderr: true,
        abortSignal: signal,
      }),
    { signal, isStream: true },
  );
  const frames = createLineReader(onLine);

  let windowEndsMs = 0;
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    output.on('data', (chunk: Buffer) => {
      frames.push(chunk);
      const nowMs = performance.now();
      if (nowMs >= windowEndsMs) {
        windowEndsMs = nowMs + 1_000;
        bytes = 0;
      }
      bytes += chunk.length;
      if (bytes < maxBytesPerSecond) return;
      output.pause();
      timer = setTimeout(() => output.resume(), windowEndsMs - nowMs).unref();
    });
    output.on('error', () => resolve());
    output.on('close', () => resolve());
    output.on('end', () => resolve());
  });
  clearTimeout(timer);
  frames.end();
}

/** Passes on the last lines that a container printed since a moment, in milliseconds since 1970. */
export async function readLastOutput(
  engine: Engine,
  container: string,
  sinceMs: number,
  onLine: OnLine,
): Promise<void> {
  const output = await engine.call((docker, abortSignal) =>
    docker.getContainer(container).logs({
      follow: false,
      stdout: true,
      stderr: true,
      since: Math.floor(sinceMs / 1000),
      tail: lastLines,
      abortSignal,
    }),
  );
  const frames = createLineReader(onLine);
  frames.push(output);
  frames.end();
}

function createLineReader(onLine: OnLine) {
  const splitters = { stdout: createLineSplitter(), stderr: createLineSplitter() };
  const { push } = createFrameReader((content, stream) => {
    for (const line of splitters[stream].push(content)) onLine(line, stream);
  });
  return {
    push,
    end() {
      for (const stream of ['stdout', 'stderr'] as const) {
        for (const line of splitters[stream].end()) onLine(line, stream);
      }
    },
  };
}
