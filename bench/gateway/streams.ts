import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadCore, onCore, type PinnedProcess } from './pinned-process.ts';

/** What a load of uploads or messages came to. */
export interface StreamResult {
  readonly unitsPerSecond: number;
  /** CPU of the proxy for one unit. */
  readonly cpuMicros: number;
  /** The most the proxy held while it lasted, above what it held before. */
  readonly grownMiB: number;
}

const script = join(import.meta.dirname, 'stream-load.ts');

/** Uploads bodies or echoes WebSocket messages through a proxy; a unit is 1 MiB or one message. */
export async function measureStream(options: {
  readonly kind: 'upload' | 'echo';
  readonly url: string;
  /** MiB a body has, or seconds the echo lasts. */
  readonly amount: number;
  readonly connections: number;
  readonly process: PinnedProcess;
}): Promise<StreamResult> {
  const { kind, url, amount, connections, process: proxy } = options;
  const residentBefore = proxy.residentBytes();
  const cpuBefore = proxy.cpuSeconds();
  let residentMax = residentBefore;
  const timer = setInterval(() => {
    residentMax = Math.max(residentMax, proxy.residentBytes());
  }, 50);
  try {
    const command = [process.execPath, script, kind, url, String(amount), String(connections)];
    const [program, ...args] = onCore(loadCore, command);
    const { stdout } = await promisify(execFile)(program, args);
    const { seconds, units } = JSON.parse(stdout) as { seconds: number; units: number };
    return {
      unitsPerSecond: units / seconds,
      cpuMicros: ((proxy.cpuSeconds() - cpuBefore) / units) * 1e6,
      grownMiB: (residentMax - residentBefore) / 2 ** 20,
    };
  } finally {
    clearInterval(timer);
  }
}

/** Resident memory of a proxy for each WebSocket that is open and silent, in KiB. */
export async function measureIdleWebSockets(options: {
  readonly url: string;
  readonly connections: number;
  readonly process: PinnedProcess;
}): Promise<number> {
  const { url, connections, process: proxy } = options;
  const before = proxy.residentBytes();
  const command = [process.execPath, script, 'idle', url, '0', String(connections)];
  const [program, ...args] = onCore(loadCore, command);
  const load = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [said] = (await once(load.stdout, 'data')) as [Buffer];
  if (said.toString() !== 'open\n') throw new Error(`the WebSockets did not open: ${said}`);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const grownKiB = (proxy.residentBytes() - before) / 1024 / connections;
  load.stdin.end();
  await once(load, 'exit');
  return grownKiB;
}
