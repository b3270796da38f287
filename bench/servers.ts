/**
 * Two hundred servers at once: started through the API, served again after a restart of the hub, and
 * ended, while somebody asks for the health of the hub all the time. Writes bench/results/servers.md, or
 * servers-docker.md with `--spawner=docker`, where each is a container of a Docker Engine of its own.
 * `node bench/servers.ts --servers=200`
 */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { busyImage, startDocker } from '../test/support/docker-engine.ts';
import { createHubFolder } from '../test/support/hub-process.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile, startHealthProbe } from './servers/health-probe.ts';

const adminToken = 'admin-service-token';
const app = join(import.meta.dirname, '..', 'fixtures', 'apps', 'trivial.pl');
const busyServer = `
at=$(echo $HUB_SERVICE_URL | tail -c +8)
mkdir -p /tmp$HUB_SERVICE_PREFIX; echo ok > /tmp$HUB_SERVICE_PREFIX/index.html
trap exit TERM
httpd -f -h /tmp -p $at & wait`;
const limits = { healthP99Ms: 50, servingAgainMs: 2_000, memoryKibPerServer: 200 };

await run(process.argv.slice(2));

async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { servers: { type: 'string' }, spawner: { type: 'string', default: 'local-process' } },
  });
  const isDocker = values.spawner === 'docker';
  const count = Number(values.servers ?? (isDocker ? 100 : 200));
  await using engine = isDocker ? await startDocker() : undefined;
  const names = Array.from({ length: count }, (_, index) => `user-${index}`);
  const config = {
    Hub: { concurrent_spawn_limit: 0, log_level: 'warn', cleanup_servers: false },
    Spawner: {
      ...(isDocker ? { class: 'docker', cmd: ['sh', '-c', busyServer] } : { cmd: ['perl', app] }),
      ...{ access: 'gateway', start_timeout: 300, http_timeout: 300 },
    },
    ...(engine === undefined
      ? {}
      : { DockerSpawner: { host: engine.host, image: busyImage, network: 'host' } }),
  };
  await using folder = await createHubFolder(config);
  const leftOver = async () =>
    engine === undefined
      ? processesOf(folder.apiUrl)
      : (await engine.docker.listContainers({ all: true })).length;
  const api = (path: string, init: RequestInit = {}) =>
    fetch(folder.apiUrl + path, {
      ...init,
      headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
    });
  const isServed = async (name: string) => {
    const headers = { authorization: `token ${adminToken}` };
    const answer = await fetch(`${folder.url}user/${name}/`, { headers });
    return answer.status === 200 && (await answer.text()) === 'ok\n';
  };
  const server = async (name: string) =>
    (await (await api(`/users/${name}/server`)).json()) as { ready: boolean; failure: unknown };
  const rows: string[][] = [];
  const report = (what: string, value: string, limit = '', isGood = true) => {
    rows.push([what, value, limit, limit === '' ? '' : isGood ? 'yes' : 'NO']);
    process.stderr.write(`${what}: ${value}\n`);
    if (!isGood) process.exitCode = 1;
  };
  const healthText = (latenciesMs: readonly number[]) =>
    `${[0.5, 0.99, 1].map((share) => percentile(latenciesMs, share).toFixed(1)).join(' / ')} ms`;

  const first = await folder.start();
  await api('/users', { method: 'POST', body: JSON.stringify({ usernames: names }) });
  for (const name of names.slice(0, 50)) await api(`/users/${name}`);
  const emptyKib = await residentKib(first.pid);

  let probe = await startHealthProbe(`${folder.url}hub/health`);
  const startedAt = performance.now();
  const answers = await Promise.all(
    names.map(async (name) => (await api(`/users/${name}/server`, { method: 'POST' })).status),
  );
  // Whoever is told to wait follows the start, as the page in a browser does.
  const slow = names.filter((_, index) => answers[index] !== 201);
  await Promise.all(
    slow.map(async (name) => (await api(`/users/${name}/server/progress`)).arrayBuffer()),
  );
  const startSeconds = (performance.now() - startedAt) / 1000;
  const startLatencies = await probe.stop();
  const models = await Promise.all(names.map(server));
  const ready = models.filter((model) => model.ready).length;
  const failed = models.filter(({ failure }) => failure !== null).length;
  report('servers started and ready', `${ready} of ${count}`, `${count}`, ready === count);
  report('servers that failed', `${failed}`, '0', failed === 0);
  report('time until all were ready', `${startSeconds.toFixed(1)} s`);
  report(
    `health during the start: p50 / p99 / longest of ${startLatencies.length}`,
    healthText(startLatencies),
    `p99 < ${limits.healthP99Ms} ms`,
    percentile(startLatencies, 0.99) < limits.healthP99Ms,
  );
  const served = (await Promise.all(names.map(isServed))).filter(Boolean).length;
  report('answer through the gateway', `${served} of ${count}`, `${count}`, served === count);
  report('memory of the hub with none / with all', await memoryText(emptyKib, first.pid));

  first.signal('SIGTERM');
  await first.exited;
  const restartedAt = performance.now();
  const second = await folder.start();
  const listeningAt = performance.now();
  let again = 0;
  while (again < count && performance.now() - listeningAt < 60_000) {
    again = (await Promise.all(names.map(isServed))).filter(Boolean).length;
  }
  const servingMs = performance.now() - listeningAt;
  report('start of the hub with all running', `${(listeningAt - restartedAt).toFixed(0)} ms`);
  report(
    `all ${again} served again after it listened`,
    `${servingMs.toFixed(0)} ms`,
    `< ${limits.servingAgainMs} ms`,
    again === count && servingMs < limits.servingAgainMs,
  );
  const fullKib = await residentKib(second.pid);

  probe = await startHealthProbe(`${folder.url}hub/health`);
  const stoppedAt = performance.now();
  await Promise.all(names.map((name) => api(`/users/${name}/server`, { method: 'DELETE' })));
  while ((await leftOver()) > 0 && performance.now() - stoppedAt < 120_000) {
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  report('time until all were stopped', `${((performance.now() - stoppedAt) / 1000).toFixed(1)} s`);
  report('health during the stop: p50 / p99 / longest', healthText(await probe.stop()));
  const left = await leftOver();
  report(isDocker ? 'containers left behind' : 'processes left behind', `${left}`, '0', left === 0);

  // A third hub, the same requests, few servers: the difference is what the others take. With an engine some run,
  // so that what the first one costs, whatever comes after it, is not counted as theirs.
  const few = isDocker ? names.slice(0, Math.ceil(count / 5)) : [];
  await Promise.all(few.map((name) => api(`/users/${name}/server`, { method: 'POST' })));
  second.signal('SIGTERM');
  await second.exited;
  const third = await folder.start();
  await Promise.all(names.map(isServed));
  const withoutKib = await residentKib(third.pid);
  const eachKib = (fullKib - withoutKib) / (count - few.length);
  report(
    `memory of the hub for each running server, ${count} against ${few.length}`,
    `${eachKib.toFixed(1)} KiB`,
    `< ${limits.memoryKibPerServer} KiB`,
    eachKib < limits.memoryKibPerServer,
  );
  await writeResults(rows, count, isDocker);
}

async function memoryText(emptyKib: number, pid: number): Promise<string> {
  const fullKib = await residentKib(pid);
  return `${(emptyKib / 1024).toFixed(0)} / ${(fullKib / 1024).toFixed(0)} MiB`;
}

async function residentKib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
}

/** How many processes of this hub's servers there are. */
async function processesOf(apiUrl: string): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
      return environment.includes(`HUB_API_URL=${apiUrl}`);
    }),
  );
  return found.filter(Boolean).length;
}

async function writeResults(
  rows: readonly string[][],
  count: number,
  isDocker: boolean,
): Promise<void> {
  const app = isDocker
    ? 'The app is the web server of busybox in containers of Docker Engine (storage driver vfs, network of the machine). Engine, hub'
    : 'The app is `fixtures/apps/trivial.pl`, a web server of twenty lines of Perl. Hub';
  await writeResultsTable({
    name: isDocker ? 'servers-docker' : 'servers',
    command: isDocker ? 'servers --spawner=docker' : 'servers',
    heading: `${count} users' servers at once${isDocker ? ', in containers' : ''}`,
    setting: `${app}, servers and the measuring program share the cores.`,
    rows,
  });
}
