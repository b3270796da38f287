/**
 * The gateway beside configurable-http-proxy and nginx, each pinned to one core, the load and the
 * upstream on another: `npm run bench -- gateway --rounds=3 --seconds=3`.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '../test/support/free-port.ts';
import { startConfigurableHttpProxy } from './gateway/configurable-http-proxy.ts';
import { startHub } from './gateway/hub-under-test.ts';
import { proxyConfig, startNginx, upstreamConfig } from './gateway/nginx.ts';
import { loadCore, type PinnedProcess, proxyCore, startPinned } from './gateway/pinned-process.ts';
import {
  type Criterion,
  machineName,
  type Report,
  type Row,
  toMarkdown,
} from './gateway/report.ts';
import {
  type Contender,
  type Measurement,
  measureInterleaved,
  median,
  ratioOf,
} from './gateway/rounds.ts';
import { measureIdleWebSockets, measureStream, type StreamResult } from './gateway/streams.ts';

/** What a browser sends with every request, beside the cookies of its login. */
const browserHeaders = {
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  Accept: 'application/json',
  'Accept-Language': 'en',
  'Accept-Encoding': 'gzip, br',
};
const connections = 64;
const largeConnections = 16;
const idleWebSockets = 2_000;
const uploadMiB = 100;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const progress = (line: string) => process.stderr.write(`${line}\n`);

const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));

const upstreamPort = await freePort();
const upstreamUrl = `http://127.0.0.1:${upstreamPort}`;
await writeFile(join(directory, 'large'), Buffer.alloc(1024 * 1024, 'l'));
disposables.use(
  await startNginx({
    core: loadCore,
    directory,
    name: 'upstream',
    port: upstreamPort,
    http: upstreamConfig(upstreamPort, directory),
  }),
);
const echoPort = await freePort();
const echoUrl = `http://127.0.0.1:${echoPort}`;
disposables.use(
  await startPinned({
    core: loadCore,
    command: [
      process.execPath,
      join(import.meta.dirname, 'gateway', 'echo-upstream.ts'),
      String(echoPort),
    ],
    port: echoPort,
  }),
);

const core = proxyCore;
const hub = disposables.use(await startHub({ core, directory, upstreamUrl, echoUrl }));
// Both measure nothing else, so that they differ in their routes alone.
const oneRoute = disposables.use(await startHub({ core, directory, upstreamUrl }));
const manyRoutes = disposables.use(
  await startHub({ core, directory, upstreamUrl, extraRoutes: 10_000 }),
);
const chp = disposables.use(
  await startConfigurableHttpProxy({
    core,
    routes: {
      '/services/guarded': upstreamUrl,
      '/services/open': upstreamUrl,
      '/services/echo': echoUrl,
    },
  }),
);
const emptyPort = await freePort();
const empty = disposables.use(
  await startPinned({
    core,
    command: [
      process.execPath,
      join(import.meta.dirname, 'gateway', 'empty-handler.ts'),
      String(emptyPort),
    ],
    port: emptyPort,
  }),
);
const chpUrl = `http://127.0.0.1:${chp.port}/`;
const nginxPort = await freePort();
const nginxUrl = `http://127.0.0.1:${nginxPort}/`;
const nginx = disposables.use(
  await startNginx({
    core,
    directory,
    name: 'proxy',
    port: nginxPort,
    http: proxyConfig({
      port: nginxPort,
      upstreamPort,
      echoPort,
      hubPort: hub.port,
      token: hub.token,
    }),
  }),
);

const small = await measureSmall();
const large = await measureLarge();
const uploads = await measureStreams('upload', { amount: uploadMiB, streams: 4 }, [
  { name: 'hub, public', url: hub.url, process: hub.process },
  { name: 'configurable-http-proxy', url: chpUrl, process: chp.process },
  { name: 'nginx', url: nginxUrl, process: nginx },
]);
const echoes = await measureStreams('echo', { amount: seconds, streams: connections }, [
  { name: 'hub, public', url: hub.url, process: hub.process },
  { name: 'configurable-http-proxy', url: chpUrl, process: chp.process },
  { name: 'nginx', url: nginxUrl, process: nginx },
]);
// In a process of its own that has not yet grown by anything else.
const fresh = disposables.use(await startHub({ core, directory, upstreamUrl, echoUrl }));
const idleKiB = await measureIdleWebSockets({
  url: `${fresh.url}services/echo/socket`,
  connections: idleWebSockets,
  process: fresh.process,
});
progress(`idle WebSocket: ${idleKiB.toFixed(1)} KiB`);

const report = compile();
const results = join(import.meta.dirname, 'results');
await mkdir(results, { recursive: true });
const markdown = toMarkdown(report);
await writeFile(join(results, 'gateway.md'), markdown);
await writeFile(join(results, 'gateway.json'), `${JSON.stringify(report, null, 2)}\n`);
process.stdout.write(markdown);

function measureSmall(): Promise<Measurement[]> {
  const headers = { ...browserHeaders, Cookie: hub.cookies };
  const guarded = 'services/guarded/api/contents';
  const open = 'services/open/api/contents';
  const hubProcess = [hub.process];
  const contenders: Contender[] = [
    { name: 'hub, guarded', url: hub.url + guarded, headers, processes: hubProcess },
    { name: 'hub, public', url: hub.url + open, headers, processes: hubProcess },
    { name: 'configurable-http-proxy', url: chpUrl + guarded, headers, processes: [chp.process] },
    { name: 'nginx', url: nginxUrl + guarded, headers, processes: [nginx] },
    {
      name: 'nginx with auth_request to the hub',
      url: `${nginxUrl}checked/${guarded}`,
      headers,
      processes: [nginx, hub.process],
    },
    {
      name: 'empty node:http handler',
      url: `http://127.0.0.1:${emptyPort}/${guarded}`,
      headers,
      processes: [empty],
    },
    {
      name: 'hub, one route',
      url: `${oneRoute.url}route/number-0/api/contents`,
      headers,
      processes: [oneRoute.process],
    },
    {
      name: 'hub, one of 10,000 routes',
      url: `${manyRoutes.url}route/number-7777/api/contents`,
      headers,
      processes: [manyRoutes.process],
    },
  ];
  return measureInterleaved({ contenders, rounds, seconds, connections, progress });
}

function measureLarge(): Promise<Measurement[]> {
  const path = 'services/open/files/large';
  const headers = browserHeaders;
  return measureInterleaved({
    contenders: [
      { name: 'hub, public', url: hub.url + path, headers, processes: [hub.process] },
      { name: 'configurable-http-proxy', url: chpUrl + path, headers, processes: [chp.process] },
      { name: 'nginx', url: nginxUrl + path, headers, processes: [nginx] },
    ],
    rounds,
    seconds,
    connections: largeConnections,
    progress,
  });
}

async function measureStreams(
  kind: 'upload' | 'echo',
  load: { readonly amount: number; readonly streams: number },
  contenders: readonly { name: string; url: string; process: PinnedProcess }[],
): Promise<{ name: string; all: StreamResult[] }[]> {
  const { amount, streams } = load;
  const measured = contenders.map(({ name }) => ({ name, all: [] as StreamResult[] }));
  // The first round only warms up.
  for (let round = -1; round < rounds; round++) {
    for (const [index, { name, url, process: proxy }] of contenders.entries()) {
      const result = await measureStream({
        kind,
        url: `${url}services/echo/${kind}`,
        amount,
        connections: streams,
        process: proxy,
      });
      if (round === -1) continue;
      measured[index]?.all.push(result);
      progress(
        `round ${round + 1}  ${kind} ${name}: ${Math.round(result.unitsPerSecond)}/s, ` +
          `${result.cpuMicros.toFixed(1)} µs CPU, grew by ${result.grownMiB.toFixed(1)} MiB`,
      );
    }
  }
  return measured;
}

function compile(): Report {
  const row = (measurement: Measurement, suffix: string): Row => ({
    name: `${measurement.name}, ${suffix}`,
    unit: 'requests',
    unitsPerSecond: measurement.requestsPerSecond,
    cpuMicros: measurement.cpuMicros,
    p50Ms: measurement.p50Ms,
    p99Ms: measurement.p99Ms,
    residentMiB: measurement.residentMiB,
  });
  const streamRow = (
    { name, all }: { name: string; all: StreamResult[] },
    what: string,
    unit: string,
  ): Row => ({
    name: `${name}, ${what}`,
    unit,
    unitsPerSecond: median(all.map(({ unitsPerSecond }) => unitsPerSecond)),
    cpuMicros: median(all.map(({ cpuMicros }) => cpuMicros)),
  });
  return {
    date: new Date().toISOString(),
    machine: machineName(),
    node: process.version.slice(1),
    rounds,
    seconds,
    setting: [
      'Proxy on one core; wrk, upstream and message load on the other, nothing in between but loopback.',
      `Small answers: 1 KiB from the memory of an nginx, ${connections} connections, a browser's headers ` +
        'and the cookies of its login to all alike. The hub is started from its command line; the ' +
        'guarded route checks the login cookie and adds the identity headers. The hub writes a line into its ' +
        'log for each request; configurable-http-proxy logs errors alone. Each is warmed up by a second of the ' +
        'same load before each of its rounds.',
      `Large answers: 1 MiB from a file, ${largeConnections} connections. Uploads: ${uploadMiB} MiB, 4 at once, ` +
        'read by a Node process. Messages: 100 bytes, one under way on each of 64 WebSockets.',
      'A ratio is the median over the rounds of the ratio within each round; by CPU time it is that of ' +
        "the processes' own time for one request (user and system), which other load on the machine " +
        'changes less.',
    ],
    rows: [
      ...small.map((measurement) => row(measurement, '1 KiB')),
      ...large.map((measurement) => row(measurement, '1 MiB')),
      ...uploads.map((one) => streamRow(one, '100 MiB uploads', 'MiB')),
      ...echoes.map((one) => streamRow(one, 'WebSocket echo', 'messages')),
    ],
    criteria: criteria(),
  };
}

function smallOf(name: string): Measurement {
  const measured = small.find((measurement) => measurement.name === name);
  if (measured === undefined) throw new Error(`${name} was not measured`);
  return measured;
}

function criteria(): Criterion[] {
  const ofSmall = (
    label: string,
    pair: [string, string],
    goal: number,
    isAim = false,
  ): Criterion => {
    const [one, other] = [smallOf(pair[0]), smallOf(pair[1])];
    return {
      label,
      figure: ratioOf(one.roundRequestsPerSecond, other.roundRequestsPerSecond),
      byCpu: ratioOf(other.roundCpuMicros, one.roundCpuMicros),
      goal,
      bound: 'least',
      unit: '×',
      isAim,
    };
  };
  const ofStreams = (
    label: string,
    measured: typeof uploads,
    peer: string,
    goal: number,
  ): Criterion => {
    const [own] = measured;
    const other = measured.find(({ name }) => name === peer);
    if (own === undefined || other === undefined) throw new Error(`${peer} was not measured`);
    const speeds = (all: StreamResult[]) => all.map(({ unitsPerSecond }) => unitsPerSecond);
    const costs = (all: StreamResult[]) => all.map(({ cpuMicros }) => cpuMicros);
    return {
      label,
      figure: ratioOf(speeds(own.all), speeds(other.all)),
      byCpu: ratioOf(costs(other.all), costs(own.all)),
      goal,
      bound: 'least',
      unit: '×',
    };
  };
  const [ofHub, ofPeer] = [smallOf('hub, guarded'), smallOf('configurable-http-proxy')];
  const [largeHub, , largeNginx] = large;
  if (largeHub === undefined || largeNginx === undefined) throw new Error('nothing was measured');
  const uploadGrowth = Math.max(...(uploads[0]?.all ?? []).map(({ grownMiB }) => grownMiB));
  return [
    ofSmall(
      '(a) guarded route against configurable-http-proxy',
      ['hub, guarded', 'configurable-http-proxy'],
      2.6,
    ),
    ofSmall(
      '(a) guarded route against an empty node:http handler, which asks no upstream',
      ['hub, guarded', 'empty node:http handler'],
      0.7,
      true,
    ),
    {
      label: '(a) p99 of the guarded route against its p50',
      figure: ofHub.p99Ms / ofHub.p50Ms,
      goal: 3,
      bound: 'most',
      unit: '×',
    },
    {
      label: '(a) p99 of configurable-http-proxy against that of the guarded route',
      figure: ofPeer.p99Ms / ofHub.p99Ms,
      goal: 2,
      bound: 'least',
      unit: '×',
    },
    ofSmall(
      '(b) public route against configurable-http-proxy',
      ['hub, public', 'configurable-http-proxy'],
      2.2,
    ),
    ofSmall('(c) public route against nginx', ['hub, public', 'nginx'], 0.5, true),
    ofSmall(
      '(c) guarded route against nginx with auth_request to the hub',
      ['hub, guarded', 'nginx with auth_request to the hub'],
      1,
      true,
    ),
    ofSmall(
      '(d) one of 10,000 routes against one route',
      ['hub, one of 10,000 routes', 'hub, one route'],
      0.95,
    ),
    {
      label: '(e) answers of 1 MiB against nginx',
      figure: ratioOf(largeHub.roundRequestsPerSecond, largeNginx.roundRequestsPerSecond),
      byCpu: ratioOf(largeNginx.roundCpuMicros, largeHub.roundCpuMicros),
      goal: 0.8,
      bound: 'least',
      unit: '×',
    },
    ofStreams('(e) uploads of 100 MiB against nginx', uploads, 'nginx', 0.8),
    {
      label: '(e) memory grown during 4 uploads of 100 MiB at once, after the first',
      figure: uploadGrowth,
      goal: 32,
      bound: 'most',
      unit: ' MiB',
    },
    ofStreams(
      '(f) WebSocket messages against configurable-http-proxy',
      echoes,
      'configurable-http-proxy',
      1,
    ),
    {
      label: `(f) each of ${idleWebSockets} idle WebSockets`,
      figure: idleKiB,
      goal: 24,
      bound: 'most',
      unit: ' KiB',
    },
  ];
}
