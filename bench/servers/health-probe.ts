import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** Asks for the health of a hub again and again, and keeps how long every answer took. */
export interface HealthProbe {
  /** Ends the probe. Latencies in milliseconds, sorted; failed answers are infinite. */
  stop(): Promise<readonly number[]>;
}

const intervalMs = 20;

/**
 * Starts a probe that asks at a fixed rate, whether or not earlier answers are there: a hub that stands
 * still for a second has fifty late answers, not one. It runs in a thread of its own, so that what the
 * measuring program does meanwhile counts for nothing.
 */
export async function startHealthProbe(url: string): Promise<HealthProbe> {
  const worker = new Worker(import.meta.filename, { workerData: url });
  await once(worker, 'message');
  return {
    async stop() {
      worker.postMessage('stop');
      const [latenciesMs] = (await once(worker, 'message')) as [number[]];
      await worker.terminate();
      return latenciesMs.sort((left, right) => left - right);
    },
  };
}

/** The value below which a share of sorted values lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function probe(url: string): void {
  const agent = new Agent({ keepAlive: true });
  const answers: Promise<number>[] = [];
  const ask = () =>
    new Promise<number>((resolve) => {
      const startedAt = performance.now();
      const fail = () => resolve(Number.POSITIVE_INFINITY);
      get(url, { agent }, (response) => {
        response.resume();
        response.once('error', fail);
        response.once('end', () =>
          response.statusCode === 200 ? resolve(performance.now() - startedAt) : fail(),
        );
      }).once('error', fail);
    });
  const timer = setInterval(() => answers.push(ask()), intervalMs);
  parentPort?.postMessage('asking');
  parentPort?.once('message', () => {
    clearInterval(timer);
    void Promise.all(answers).then((latenciesMs) => parentPort?.postMessage(latenciesMs));
  });
}

if (!isMainThread) probe(String(workerData));
