import type { Limiter } from '../../platform/concurrency/limiter.ts';
import { systemClock } from '../processes/clock.ts';
import { createLineSplitter } from '../processes/output-lines.ts';
import type { Cluster } from './cluster.ts';
import { serverContainer } from './pod-patch.ts';
import type { PodKey } from './pods.ts';

type OnOutput = (line: string, stream: 'stdout' | 'stderr') => void;

/** Bytes of output a second that are read of one pod; its node keeps the rest until then. */
const maxBytesPerSecond = 1024 * 1024;
const lastLines = 50;
const lastBytes = 256 * 1024;
/** A server that prints nothing for so long is not followed any more. */
const idleMs = 120_000;

/**
 * Passes on the lines a server prints, from the first one until it has ended or the signal aborts. Kubernetes does
 * not tell stdout and stderr apart. Rejects when the API cannot tell them.
 */
export async function followOutput(
  cluster: Cluster,
  pod: PodKey,
  {
    signal,
    onOutput,
    inTurn,
  }: { readonly signal: AbortSignal; readonly onOutput: OnOutput; readonly inTurn: Limiter },
): Promise<void> {
  const query = { container: serverContainer, follow: true };
  const open = () => cluster.stream(logPath(pod), { query, signal, idleMs });
  const stream = await inTurn(open, signal);
  const splitter = createLineSplitter();
  let windowEndsMs = 0;
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      for (const line of splitter.push(chunk)) onOutput(line, 'stdout');
      const nowMs = systemClock.monotonicMs();
      if (nowMs >= windowEndsMs) {
        windowEndsMs = nowMs + 1_000;
        bytes = 0;
      }
      bytes += chunk.length;
      if (bytes >= maxBytesPerSecond) await systemClock.sleep(windowEndsMs - nowMs, signal);
    }
  } finally {
    for (const line of splitter.end()) onOutput(line, 'stdout');
  }
}

/** Passes on the last lines that a server printed, those of the last seconds or all. */
export async function readLastOutput(
  cluster: Cluster,
  pod: PodKey,
  { sinceSeconds, onOutput }: { readonly sinceSeconds?: number; readonly onOutput: OnOutput },
): Promise<void> {
  const text = await cluster.call<string>('GET', logPath(pod), {
    asText: true,
    query: {
      container: serverContainer,
      tailLines: lastLines,
      limitBytes: lastBytes,
      sinceSeconds: sinceSeconds === undefined ? undefined : Math.max(1, Math.ceil(sinceSeconds)),
    },
  });
  const splitter = createLineSplitter();
  const lines = [...splitter.push(Buffer.from(text)), ...splitter.end()];
  for (const line of lines) onOutput(line, 'stdout');
}

function logPath({ namespace, pod }: PodKey): string {
  return `/api/v1/namespaces/${namespace}/pods/${pod}/log`;
}
