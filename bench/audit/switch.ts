import { subscribe } from 'node:diagnostics_channel';
import { readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** What a request cost: microseconds of CPU until the next one came, of all threads of the hub. */
export interface Sample {
  readonly on: boolean;
  readonly micros: number;
}

/** Requests that are measured have it. */
export const measuredHeader = 'x-measured';

/**
 * Whether each of eight requests is recorded. What grows meanwhile meets both alike, and so does what makes two requests after
 * another slow: each kind has one such pair, and the same distances.
 */
export const partsOfEight = [true, false, false, true, false, true, true, false] as const;

let isOn = true;
let isMeasuring = false;
/** Other processes whose time counts too. */
let pids: readonly number[] = [];
let samples: Sample[] = [];
let requests = 0;
let before = 0;

/** Whether the hub that this is loaded into records at the moment. */
export const isRecording = (): boolean => isOn;

function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return pids.reduce((sum, pid) => sum + cpuMicrosOf(pid), user + system);
}

function cpuMicrosOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e3;
  } catch {
    return 0;
  }
}

function begin(): void {
  if (!isMeasuring) return;
  if (requests > 0) samples.push({ on: isOn, micros: cpuMicros() - before });
  isOn = partsOfEight[requests % partsOfEight.length] === true;
  requests += 1;
  before = cpuMicros();
}

/**
 * Turns recording on and off while a hub runs, from one request to the next, and measures each. Told what to do over a socket that
 * keeps no process from ending.
 */
export function listenForSwitch(path: string): void {
  subscribe('http.server.request.start', (message) => {
    const { request: asked } = message as { readonly request: IncomingMessage };
    if (asked.headers[measuredHeader] !== undefined) begin();
  });
  const server = createServer((asked, answer) => {
    answer.end(JSON.stringify(samples));
    const reported = new URL(asked.url ?? '/', 'http://hub').searchParams;
    isMeasuring = reported.has('pids');
    pids = (reported.get('pids') ?? '').split(',').filter(Boolean).map(Number);
    samples = [];
    requests = 0;
    isOn = true;
  });
  // The program may have begun once already, to begin again with flags of its own.
  rmSync(path, { force: true });
  server.listen(path).unref();
  server.on('connection', (connection) => connection.unref());
}

/** From now on a hub measures its requests, and with them the time of these other processes. */
export async function startSampling(path: string, others: readonly number[]): Promise<void> {
  await tell(path, `/?pids=${others.join(',')}`);
}

/** From now on a hub records all. Returns what it measured. */
export async function stopSampling(path: string): Promise<Sample[]> {
  return JSON.parse(await tell(path, '/')) as Sample[];
}

function tell(socketPath: string, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request({ socketPath, path, agent: false });
  asked.once('response', (answer) => {
    text(answer).then(resolve, reject);
  });
  asked.once('error', reject).end();
  return promise;
}
