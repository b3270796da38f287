import { Agent, get } from 'node:http';

/** Asks for the health of a hub again and again, and keeps how long every answer took. */
export interface HealthProbe {
  /** Ends the probe. Latencies in milliseconds, sorted; failed answers are infinite. */
  stop(): Promise<readonly number[]>;
}

const intervalMs = 20;

/**
 * Starts a probe that asks at a fixed rate, whether or not earlier answers are there: a hub that stands
 * still for a second has fifty late answers, not one.
 */
export function startHealthProbe(url: string): HealthProbe {
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

  return {
    async stop() {
      clearInterval(timer);
      const latenciesMs = await Promise.all(answers);
      agent.destroy();
      return latenciesMs.sort((left, right) => left - right);
    },
  };
}

/** The value below which a share of sorted values lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
