import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';
import { descendantsOf } from '../chaos/processes.ts';
import { startHub } from '../gateway/hub-under-test.ts';
import { startNginx, upstreamConfig } from '../gateway/nginx.ts';
import { bothCores, meteredProcess } from '../gateway/pinned-process.ts';
import { type Contender, measureInterleaved, ratioOf } from '../gateway/rounds.ts';

export interface GatewaysReport {
  /** Requests per second of two gateway processes by those of one. */
  readonly throughputRatio: number;
  /** CPU time of the processes for one request, of two by that of one. */
  readonly cpuRatio: number;
  readonly summaries: readonly string[];
}

const connections = 256;

/**
 * What a notebook in a browser sends with each of its questions, beside the cookies of its login. To the load it makes
 * no difference; a gateway reads each header, and decides which of them an upstream may see.
 */
const notebookHeaders = {
  'User-Agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  Accept: '*/*',
  'Accept-Language': 'en-GB,en;q=0.9,de;q=0.8',
  'Accept-Encoding': 'gzip, deflate, br, zstd',
  'Cache-Control': 'no-store',
  Pragma: 'no-cache',
  Priority: 'u=1, i',
  'Sec-Fetch-Dest': 'empty',
  'Sec-Fetch-Mode': 'cors',
  'Sec-Fetch-Site': 'same-origin',
  'sec-ch-ua': '"Chromium";v="140", "Not=A?Brand";v="24"',
  'sec-ch-ua-mobile': '?0',
  'sec-ch-ua-platform': '"Linux"',
  'X-XSRFToken': '2|6f1a2b3c|8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a|1763820000',
};
const notebookCookie = '_xsrf=2|6f1a2b3c|8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a|1763820000';

/** The load, in words. */
export const gatewayLoad =
  `${connections} browsers of a notebook: a guarded route, ${Object.keys(notebookHeaders).length + 3} headers and ` +
  'the cookies of a login, answers of 1 KiB from the memory of an nginx; wrk and nginx share the cores';

/** A guarded route through one gateway process and through two, each set with a hub of its own, on all cores. */
export async function measureGateways(options: {
  readonly rounds: number;
  readonly seconds: number;
  readonly say: (text: string) => void;
}): Promise<GatewaysReport> {
  const { rounds, seconds, say } = options;
  await using disposables = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
  disposables.defer(() => rm(directory, { recursive: true, force: true }));
  const port = await freePort();
  disposables.use(
    await startNginx({
      core: bothCores,
      directory,
      name: 'upstream',
      port,
      http: upstreamConfig(port, directory),
    }),
  );
  const contenders: Contender[] = [];
  for (const gateways of [1, 2]) {
    const upstreamUrl = `http://127.0.0.1:${port}`;
    const hub = await startHub({ core: bothCores, directory, upstreamUrl, gateways });
    disposables.use(hub);
    const pids = descendantsOf(hub.process.pid).filter(isGateway);
    if (pids.length !== gateways) throw new Error(`${pids.length} gateways instead of ${gateways}`);
    contenders.push({
      name: `${gateways} gateway process${gateways === 1 ? '' : 'es'}`,
      url: `${hub.url}services/guarded/api/contents`,
      headers: {
        ...notebookHeaders,
        Referer: `${hub.url}services/guarded/lab`,
        Cookie: `${hub.cookies}; ${notebookCookie}`,
      },
      processes: [hub.process.pid, ...pids].map(meteredProcess),
    });
  }
  const measured = await measureInterleaved({
    contenders,
    rounds,
    seconds,
    connections,
    loadCores: bothCores,
    progress: say,
  });
  const [one, two] = measured;
  if (one === undefined || two === undefined) throw new Error('nothing was measured');
  return {
    throughputRatio: ratioOf(two.roundRequestsPerSecond, one.roundRequestsPerSecond),
    cpuRatio: ratioOf(two.roundCpuMicros, one.roundCpuMicros),
    summaries: measured.map(
      ({ name, requestsPerSecond, cpuMicros }) =>
        `${name}: ${Math.round(requestsPerSecond)} requests/s, ${cpuMicros.toFixed(0)} µs CPU each`,
    ),
  };
}

function isGateway(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes('gateway');
}
