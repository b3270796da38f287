/**
 * What TLS, HTTP/2 and traces cost, beside Caddy and nginx that end TLS and ask the hub; and how soon an empty folder
 * answers over https. Each proxy has one core, load and upstream the other. Writes bench/results/tls.md.
 * `npm run bench -- tls --rounds=5 --requests=40000 --starts=5`; `--only=http2,tracing,peers,start` for parts of it.
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '../test/support/free-port.ts';
import { selfSigned } from '../test/support/tls-front.ts';
import { type HubUnderTest, startHub } from './gateway/hub-under-test.ts';
import { startNginx, upstreamConfig } from './gateway/nginx.ts';
import { loadCore, proxyCore as core } from './gateway/pinned-process.ts';
import { median, ratioOf } from './gateway/rounds.ts';
import { writeResultsTable } from './results-table.ts';
import { measureFirstAnswer } from './tls/first-answer.ts';
import { measureInTurns, type Rounds } from './tls/h2load.ts';
import { peerHosts, startCaddy, startTlsNginx } from './tls/peers.ts';

const parts = ['http2', 'tracing', 'peers', 'start'] as const;
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    requests: { type: 'string', default: '40000' },
    starts: { type: 'string', default: '5' },
    only: { type: 'string', default: parts.join() },
  },
});
const [rounds, requests, starts] = [values.rounds, values.requests, values.starts].map(Number) as [
  number,
  number,
  number,
];
const wanted = new Set(values.only.split(','));
const connections = 64;
const fewConnections = 8;
const streams = 8;
const browserHeaders = {
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  Accept: 'application/json',
  'Accept-Language': 'en',
  'Accept-Encoding': 'gzip, br',
};

await using disposables = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
disposables.defer(() => rm(directory, { recursive: true, force: true }));
const upstreamPort = await freePort();
const upstreamUrl = `http://127.0.0.1:${upstreamPort}`;
const http = upstreamConfig(upstreamPort, directory);
const upstream = { core: loadCore, directory, name: 'upstream', port: upstreamPort, http };
disposables.use(await startNginx(upstream));
const tls = { certificate: join(directory, 'hub.pem'), key: join(directory, 'hub.key') };
const { cert, key } = selfSigned(['hub.localhost', ...Object.values(peerHosts)], 90);
await writeFile(tls.certificate, cert);
await writeFile(tls.key, key, { mode: 0o600 });

const rows: string[][] = [];
if (wanted.has('http2')) await compareVersions();
if (wanted.has('tracing')) await compareTracing();
if (wanted.has('peers')) await compareToPeers();
if (wanted.has('start')) await timeStarts();
await writeResultsTable({
  name: 'tls',
  heading: 'TLS, HTTP/2 and traces',
  setting:
    `Each proxy on one core, with the hub that it asks; h2load and an nginx that answers 1 KiB from memory on the other. ${connections} kept connections ` +
    'with one request at a time unless said otherwise, a browser’s headers, a guarded route, a line in the log of the hub for each request. ' +
    `Medians over ${rounds} rounds in turn of ${requests} requests each, of traces over ${rounds * 8} of ${requests / 5}; a ratio is that within each round, and CPU the exact processor time ` +
    '(user and system) of all processes that the request goes through.',
  rows,
  isPartial: parts.some((part) => !wanted.has(part)),
});

function report(what: string, value: string, limit = '', isGood = true): void {
  rows.push([what, value, limit, limit === '' ? '' : isGood ? 'yes' : 'NO']);
  process.stderr.write(`${what}: ${value}\n`);
  if (!isGood) process.exitCode = 1;
}

function figures({ requestsPerSecond, cpuMicros }: Rounds): string {
  return `${median(requestsPerSecond).toFixed(0)}/s, ${median(cpuMicros).toFixed(1)} µs`;
}

/** By rate, and by processor time, which other work on the machine changes less. */
function compare(what: string, one: Rounds, other: Rounds, atLeast: number): void {
  const byCpu = ratioOf(other.cpuMicros, one.cpuMicros);
  const byRate = ratioOf(one.requestsPerSecond, other.requestsPerSecond);
  const value = `${byRate.toFixed(2)}×, by CPU ${byCpu.toFixed(2)}×`;
  report(what, value, `≥ ${atLeast}×`, Math.min(byRate, byCpu) >= atLeast);
}

async function compareVersions(): Promise<void> {
  await using hub = await startHub({ core, directory, upstreamUrl, tls, settings: { Hub: { http2: true } } });
  const all = {
    ...guarded(hub, { ...browserHeaders, cookie: hub.cookies }),
    processes: [hub.process],
  };
  const few = { ...all, connections: fewConnections };
  const measured = await measureInTurns({
    sides: {
      http1: { ...all, isHttp1: true },
      http2: { ...all, isHttp1: false },
      shared: { ...few, isHttp1: false, streams },
    },
    rounds,
    requests,
  });
  report('guarded over TLS by HTTP/1.1', figures(measured.http1));
  report('the same by HTTP/2', figures(measured.http2));
  const shared = `by HTTP/2 on ${fewConnections} connections with ${streams} streams each`;
  report(`the same ${shared}`, figures(measured.shared));
  compare('HTTP/2 against HTTP/1.1, on as many connections', measured.http2, measured.http1, 0.75);
  compare(`${shared}, against HTTP/1.1 on ${connections}`, measured.shared, measured.http1, 0.75);
}

async function compareTracing(): Promise<void> {
  let spans = 0;
  const collector = createServer((req, res) => {
    req.setEncoding('latin1').on('data', (text: string) => {
      spans += text.split('"spanId"').length - 1;
    });
    req.on('end', () => res.end('{}'));
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`;
  await using hubs = new AsyncDisposableStack();
  hubs.defer(() => void collector.close());
  const start = async (Hub: object) =>
    hubs.use(await startHub({ core, directory, upstreamUrl, settings: { Hub } }));
  const side = (hub: HubUnderTest) => ({
    ...guarded(hub, { ...browserHeaders, cookie: hub.cookies }),
    isHttp1: true,
    processes: [hub.process],
  });
  const measured = await measureInTurns({
    sides: {
      off: side(await start({})),
      same: side(await start({})),
      on: side(await start({ tracing: { endpoint, sample_ratio: 0.01 } })),
    },
    // In short turns: a few per cent are less than what the machine changes by in a minute.
    rounds: rounds * 8,
    requests: requests / 5,
  });
  if (spans === 0) throw new Error('the collector got no trace');
  const more = (rounds: Rounds) => (ratioOf(rounds.cpuMicros, measured.off.cpuMicros) - 1) * 100;
  report('guarded over plain http without traces', figures(measured.off));
  report('the same by another hub of the same settings', `${more(measured.same).toFixed(1)} % CPU`);
  const value = `${more(measured.on).toFixed(1)} % CPU`;
  report('traces of 1 % to a collector', value, '≤ 2 %', more(measured.on) <= 2);
}

async function compareToPeers(): Promise<void> {
  const hub = disposables.use(await startHub({ core, directory, upstreamUrl, tls }));
  const access = 'forward-auth';
  const asked = disposables.use(
    await startHub({
      core,
      directory,
      upstreamUrl,
      settings: {
        Hub: { trusted_proxies: ['127.0.0.1'] },
        Proxy: {
          extra_routes: Object.fromEntries(
            Object.entries(peerHosts).map(([name, host]) => [`${host}/`, { access, name }]),
          ),
        },
      },
    }),
  );
  const setting = { directory, ...tls, upstreamPort, hubPort: asked.port };
  const caddy = disposables.use(await startCaddy(setting));
  const nginx = disposables.use(await startTlsNginx(setting));
  const behind = ({ url, process }: typeof caddy) => ({
    url: `${url}api/contents`,
    headers: { ...browserHeaders, authorization: `token ${asked.token}` },
    connections,
    isHttp1: true,
    processes: [process, asked.process],
  });
  const measured = await measureInTurns({
    sides: {
      hub: {
        ...guarded(hub, { ...browserHeaders, authorization: `token ${hub.token}` }),
        isHttp1: true,
        processes: [hub.process],
      },
      caddy: behind(caddy),
      nginx: behind(nginx),
    },
    rounds,
    requests,
  });
  report('guarded over TLS with a token', figures(measured.hub));
  report('the same by Caddy with forward_auth to the hub', figures(measured.caddy));
  report('the same by nginx with auth_request to the hub', figures(measured.nginx));
  compare('the hub against Caddy', measured.hub, measured.caddy, 2);
  compare('the hub against nginx', measured.hub, measured.nginx, 0.5);
}

async function timeStarts(): Promise<void> {
  const seconds: number[] = [];
  for (let turn = 0; turn < starts; turn += 1) seconds.push(await measureFirstAnswer());
  const worst = Math.max(...seconds);
  const value = `${median(seconds).toFixed(1)} s, at most ${worst.toFixed(1)} s`;
  const what = `an empty folder, two settings, \`hub start\` to the first answer over https (by pebble, ${starts} times)`;
  report(what, value, '< 10 s', worst < 10);
}

function guarded({ url }: HubUnderTest, headers: Readonly<Record<string, string>>) {
  return { url: `${url}services/guarded/api/contents`, headers, connections };
}
