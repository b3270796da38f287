import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { exactCpuSeconds, loadCore, type MeteredProcess, onCore } from '../gateway/pinned-process.ts';

/** One thing to measure: an address, how it is asked, and the processes that do the work behind it. */
export interface Side {
  readonly name: string;
  /** Its host may be any name: it is asked at 127.0.0.1. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isHttp1: boolean;
  readonly connections: number;
  /** Requests under way on each connection. */
  readonly streams?: number;
  readonly processes: readonly MeteredProcess[];
}

/** What was measured in each round. */
export interface Rounds {
  readonly requestsPerSecond: readonly number[];
  readonly cpuMicros: readonly number[];
}

/** Has all sides answer as many requests in turn, round after round, after a round that only warms up. */
export async function measureInTurns<Name extends string>(options: {
  readonly sides: Readonly<Record<Name, Omit<Side, 'name'>>>;
  readonly rounds: number;
  readonly requests: number;
}): Promise<Record<Name, Rounds>> {
  const { rounds, requests } = options;
  const sides = Object.entries<Omit<Side, 'name'>>(options.sides);
  const results = new Map(
    sides.map(([name]) => [name, { requestsPerSecond: [] as number[], cpuMicros: [] as number[] }]),
  );
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, side] of round % 2 === 0 ? sides : sides.toReversed()) {
      const cpuSeconds = () => side.processes.reduce((sum, each) => sum + exactCpuSeconds(each), 0);
      const before = cpuSeconds();
      const rate = await h2load({ ...side, name, requests });
      const micros = ((cpuSeconds() - before) / requests) * 1e6;
      process.stderr.write(`round ${round}  ${name}: ${rate.toFixed(0)} req/s, ${micros.toFixed(1)} µs CPU\n`);
      if (round === 0) continue;
      results.get(name)?.requestsPerSecond.push(rate);
      results.get(name)?.cpuMicros.push(micros);
    }
  }
  return Object.fromEntries(results) as unknown as Record<Name, Rounds>;
}

/** Requests a second. Throws when any of them is not answered with success: a wrong answer is quickly given. */
async function h2load({
  name,
  url,
  headers,
  isHttp1,
  connections,
  streams = 1,
  requests,
}: Side & { readonly requests: number }): Promise<number> {
  const [program, ...args] = onCore(loadCore, [
    'h2load',
    ...['-t', '1', '-c', String(connections), '-m', String(streams), '-n', String(requests)],
    ...(isHttp1 ? ['--h1'] : []),
    `--connect-to=127.0.0.1:${new URL(url).port}`,
    ...Object.entries(headers).flatMap(([header, value]) => ['-H', `${header}: ${value}`]),
    url,
  ]);
  const { stdout } = await promisify(execFile)(program, args);
  const expected = isHttp1 ? 'http/1.1' : 'h2';
  const isAsWanted =
    stdout.includes(`status codes: ${requests} 2xx`) &&
    (url.startsWith('http:') || stdout.includes(`Application protocol: ${expected}`));
  if (!isAsWanted) throw new Error(`${name} failed under load:\n${stdout}`);
  return Number(/finished in .*?, ([\d.]+) req\/s/.exec(stdout)?.[1]);
}
