import type { Cores, MeteredProcess } from './pinned-process.ts';
import { type LoadResult, wrk } from './wrk.ts';

/** One thing to measure: an address, and the processes that do the work behind it. */
export interface Contender {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A script in Lua that makes the requests; without it all are the same. */
  readonly script?: string;
  /** All processes whose CPU time the request costs; all on the proxy's core. */
  readonly processes: readonly MeteredProcess[];
}

/** The medians over all rounds. */
export interface Measurement {
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly bytesPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicros: number;
  readonly residentMiB: number;
  /** Requests per second of CPU: what one core would serve if it did nothing else. */
  readonly requestsPerCpuSecond: number;
  readonly roundRequestsPerSecond: readonly number[];
  readonly roundCpuMicros: readonly number[];
}

/** Long enough for a runtime that compiles as it goes to have compiled what a request needs. */
const firstLoadSeconds = 5;
/** Before each measurement: what a contender gave up while the others were measured is not what is asked for. */
const warmUpSeconds = 1;

/**
 * Measures all contenders in turn, round after round, so that whatever else the machine does meets
 * all of them alike. Each is warmed up by the same load before each of its rounds.
 */
export async function measureInterleaved(options: {
  readonly contenders: readonly Contender[];
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: number;
  /** Where the load runs, if not on a core of its own. */
  readonly loadCores?: Cores;
  readonly progress: (line: string) => void;
}): Promise<Measurement[]> {
  const { contenders, rounds, seconds, connections, loadCores: core, progress } = options;
  const results = contenders.map(() => [] as (LoadResult & { cpuMicros: number })[]);
  for (const { url, headers, script } of contenders) {
    await wrk({ url, headers, script, seconds: firstLoadSeconds, connections, core });
  }
  for (let round = 0; round < rounds; round++) {
    for (const [index, contender] of contenders.entries()) {
      const { name, url, headers, script, processes } = contender;
      await wrk({ url, headers, script, seconds: warmUpSeconds, connections, core });
      const before = cpuSeconds(processes);
      const result = await wrk({ url, headers, script, seconds, connections, core });
      const cpuMicros = ((cpuSeconds(processes) - before) / result.requests) * 1e6;
      results[index]?.push({ ...result, cpuMicros });
      progress(
        `round ${round + 1}  ${name}: ${Math.round(result.requestsPerSecond)} req/s, ` +
          `${cpuMicros.toFixed(1)} µs CPU, p99 ${result.p99Ms.toFixed(1)} ms`,
      );
    }
  }
  return contenders.map(({ name, processes }, index) => {
    const all = results[index] ?? [];
    const cpuMicros = median(all.map((result) => result.cpuMicros));
    return {
      name,
      requestsPerSecond: median(all.map((result) => result.requestsPerSecond)),
      bytesPerSecond: median(all.map((result) => result.bytesPerSecond)),
      p50Ms: median(all.map((result) => result.p50Ms)),
      p99Ms: median(all.map((result) => result.p99Ms)),
      cpuMicros,
      residentMiB:
        processes.reduce((total, process) => total + process.residentBytes(), 0) / 2 ** 20,
      requestsPerCpuSecond: 1e6 / cpuMicros,
      roundRequestsPerSecond: all.map((result) => result.requestsPerSecond),
      roundCpuMicros: all.map((result) => result.cpuMicros),
    };
  });
}

/**
 * The median over rounds of the ratio within each round: neighbours in time share the machine's
 * other load.
 */
export function ratioOf(figures: readonly number[], base: readonly number[]): number {
  return median(figures.map((figure, round) => figure / (base[round] ?? Number.NaN)));
}

/** The middle of some figures. */
export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

function cpuSeconds(processes: readonly MeteredProcess[]): number {
  return processes.reduce((total, process) => total + process.cpuSeconds(), 0);
}
