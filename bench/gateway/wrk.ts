import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Cores, loadCore, onCore } from './pinned-process.ts';

/** What wrk reports of one run. */
export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly bytesPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const unitMs: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };
const unitBytes: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1024,
  MB: 1024 ** 2,
  GB: 1024 ** 3,
};

/** Loads one address. Throws when any answer is no success: a wrong answer is quickly given. */
export async function wrk(options: {
  readonly url: string;
  readonly seconds: number;
  readonly connections: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly core?: Cores | undefined;
  /** A script in Lua that makes the requests. */
  readonly script?: string | undefined;
}): Promise<LoadResult> {
  const { url, seconds, connections, headers, script } = options;
  const [program, ...args] = onCore(options.core ?? loadCore, [
    'wrk',
    '--latency',
    '--timeout=30s',
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    ...(script === undefined ? [] : ['-s', script]),
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    url,
  ]);
  const { stdout } = await promisify(execFile)(program, args);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${url} failed under load:\n${stdout}`);
  const [, requests = '', duration = ''] =
    /(\d+) requests in ([\d.]+(?:us|ms|s|m))/.exec(stdout) ?? [];
  const seconds_ = milliseconds(duration) / 1000;
  const [, amount = '0', unit = 'B'] = /Transfer\/sec:\s+([\d.]+)([KMG]?B)/.exec(stdout) ?? [];
  return {
    requests: Number(requests),
    requestsPerSecond: Number(requests) / seconds_,
    bytesPerSecond: Number(amount) * (unitBytes[unit] ?? Number.NaN),
    p50Ms: percentile(stdout, 50),
    p99Ms: percentile(stdout, 99),
  };
}

function percentile(report: string, percent: number): number {
  return milliseconds(new RegExp(`^\\s*${percent}%\\s+(\\S+)`, 'm').exec(report)?.[1] ?? '');
}

function milliseconds(text: string): number {
  const [, amount = '', unit = ''] = /^([\d.]+)(us|ms|s|m)$/.exec(text) ?? [];
  return Number(amount) * (unitMs[unit] ?? Number.NaN);
}
