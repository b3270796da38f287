import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '../test/support/postgres.ts';
import { startConfigurableHttpProxy } from './gateway/configurable-http-proxy.ts';
import { startHub } from './gateway/hub-under-test.ts';
import { proxyConfig, startNginx, upstreamConfig } from './gateway/nginx.ts';
import { loadCore, proxyCore } from './gateway/pinned-process.ts';
import { type Contender, measureInterleaved, ratioOf } from './gateway/rounds.ts';

/** What a browser sends with every request. */
const browserHeaders = {
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  Accept: 'application/json',
  'Accept-Language': 'en',
  'Accept-Encoding': 'gzip, br',
};

/** Measures the gateway beside its peers and writes the table to bench/results. */
await run(process.argv.slice(2));

async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '5' },
      only: { type: 'string', default: '' },
    },
  });
  const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
  await using disposables = new AsyncDisposableStack();
  disposables.defer(() => rm(directory, { recursive: true, force: true }));
  const progress = (line: string) => process.stderr.write(`${line}\n`);

  const upstreamPort = await freePort();
  const upstreamUrl = `http://127.0.0.1:${upstreamPort}`;
  disposables.use(
    await startNginx({
      core: loadCore,
      directory,
      name: 'upstream',
      port: upstreamPort,
      http: upstreamConfig(upstreamPort, directory),
    }),
  );
  const core = proxyCore;
  const hub = disposables.use(await startHub({ core, directory, upstreamUrl }));
  const manyRoutes = disposables.use(
    await startHub({ core, directory, upstreamUrl, extraRoutes: 10_000 }),
  );
  const chp = disposables.use(
    await startConfigurableHttpProxy({
      core,
      upstreamUrl,
      prefixes: ['/services/guarded', '/services/open'],
    }),
  );
  const nginxPort = await freePort();
  const nginx = disposables.use(
    await startNginx({
      core,
      directory,
      name: 'proxy',
      port: nginxPort,
      http: proxyConfig({ port: nginxPort, upstreamPort, hubPort: hub.port, token: hub.token }),
    }),
  );
  const headers = { ...browserHeaders, Cookie: hub.cookies };
  const path = 'services/guarded/api/contents';
  const contenders: Contender[] = [
    { name: 'guarded', url: hub.url + path, headers, processes: [hub.process] },
    {
      name: 'public',
      url: `${hub.url}services/open/api/contents`,
      headers,
      processes: [hub.process],
    },
    { name: 'chp', url: `http://127.0.0.1:${chp.port}/${path}`, headers, processes: [chp.process] },
    { name: 'nginx', url: `http://127.0.0.1:${nginxPort}/${path}`, headers, processes: [nginx] },
    {
      name: 'nginx+check',
      url: `http://127.0.0.1:${nginxPort}/checked/${path}`,
      headers,
      processes: [nginx, hub.process],
    },
    {
      name: 'many',
      url: `${manyRoutes.url}route/number-7777/api/contents`,
      headers,
      processes: [manyRoutes.process],
    },
  ].filter(({ name }) => values.only === '' || values.only.split(',').includes(name));
  const measured = await measureInterleaved({
    contenders,
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    connections: 64,
    progress,
  });
  for (const m of measured) {
    const base = measured.find(({ name }) => name === 'chp');
    console.log(
      m.name,
      Math.round(m.requestsPerSecond),
      m.cpuMicros.toFixed(1),
      m.p99Ms.toFixed(2),
      m.residentMiB.toFixed(0),
      base && ratioOf(m.roundRequestsPerSecond, base.roundRequestsPerSecond).toFixed(2),
      base && ratioOf(base.roundCpuMicros, m.roundCpuMicros).toFixed(2),
    );
  }
}
