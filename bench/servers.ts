/**
 * Two hundred servers at once: started through the API, served again after a restart of the hub, and
 * ended, while somebody asks for the health of the hub all the time; then the hub is killed in the middle of
 * the same starts. Writes bench/results/servers.md, or servers-docker.md with `--spawner=docker` and
 * servers-slurm.md with `--spawner=slurm`, servers-kubernetes.md with `--spawner=kubernetes`: a hundred containers,
 * jobs or pods of an engine of its own.
 * `node bench/servers.ts --servers=200`
 */

import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createHubFolder } from '../test/support/hub-process.ts';
import { writeResultsTable } from './results-table.ts';
import { type BenchEngine, openEngine } from './servers/engines.ts';
import { percentile, startHealthProbe } from './servers/health-probe.ts';

const adminToken = 'admin-service-token';
const settlingSeconds = 10;
const limits = { healthP99Ms: 50, servingAgainMs: 2_000, memoryKibPerServer: 200 };

interface Model {
  readonly ready: boolean;
  readonly pending: string | null;
  readonly failure: { readonly message: string } | null;
}

// Ended by hand, it ends the engine and all that runs there.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await run(process.argv.slice(2));

async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { servers: { type: 'string' }, spawner: { type: 'string', default: 'local-process' } },
  });
  const { spawner } = values;
  await using engine = await openEngine(spawner);
  const count = Number(values.servers ?? engine.servers);
  const names = Array.from({ length: count }, (_, index) => `user-${index}`);
  await using folder = await createHubFolder({
    ...engine.config,
    Hub: {
      ...engine.config['Hub'],
      concurrent_spawn_limit: 0,
      log_level: 'warn',
      cleanup_servers: false,
    },
    Spawner: {
      ...engine.config['Spawner'],
      access: 'gateway',
      start_timeout: 300,
      http_timeout: 300,
    },
  });
  const apiUrl = `${engine.config['Hub']?.['hub_bind_url'] ?? new URL(folder.apiUrl).origin}/hub/api`;
  const leftOver = async () => (await engine.running(apiUrl)).length;
  const api = (path: string, init: RequestInit = {}) =>
    fetch(apiUrl + path, {
      ...init,
      headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
    });
  const isServed = async (name: string) => {
    const headers = { authorization: `token ${adminToken}` };
    const answer = await fetch(`${folder.url}user/${name}/`, { headers });
    return answer.status === 200 && (await answer.text()) === 'ok\n';
  };
  const server = async (name: string) =>
    (await (await api(`/users/${name}/server`)).json()) as Model;
  const stateOf = async (name: string) => {
    const model = await server(name);
    if (model.ready) return 'ready';
    if (model.pending !== null) return 'pending';
    return model.failure === null ? 'silent' : 'failed';
  };
  const untilGone = async () => {
    const since = performance.now();
    while ((await leftOver()) > 0 && performance.now() - since < 120_000) await pause();
  };
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
  tellReasons(models);
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
  const fullKib = await settledKib(second.pid);

  probe = await startHealthProbe(`${folder.url}hub/health`);
  const stoppedAt = performance.now();
  await Promise.all(names.map((name) => api(`/users/${name}/server`, { method: 'DELETE' })));
  await untilGone();
  report('time until all were stopped', `${((performance.now() - stoppedAt) / 1000).toFixed(1)} s`);
  report('health during the stop: p50 / p99 / longest', healthText(await probe.stop()));
  const left = await leftOver();
  report(`each ${engine.noun} left behind`, `${left}`, '0', left === 0);

  // A third hub, the same requests, few servers: the difference is what the others take. With an engine's client some run,
  // so that what the first one costs, whatever comes after it, is not counted as theirs.
  const few = engine.hasClient ? names.slice(0, Math.ceil(count / 5)) : [];
  await Promise.all(few.map((name) => api(`/users/${name}/server`, { method: 'POST' })));
  second.signal('SIGTERM');
  await second.exited;
  const third = await folder.start();
  await Promise.all(names.map(isServed));
  const withoutKib = await settledKib(third.pid);
  const eachKib = (fullKib - withoutKib) / (count - few.length);
  report(
    `memory of the hub for each running server, ${count} against ${few.length}`,
    `${eachKib.toFixed(1)} KiB`,
    `< ${limits.memoryKibPerServer} KiB`,
    eachKib < limits.memoryKibPerServer,
  );

  // Again all at once, by a hub that is killed in the middle.
  await Promise.all(few.map((name) => api(`/users/${name}/server`, { method: 'DELETE' })));
  await untilGone();
  const starts = names.map((name) =>
    api(`/users/${name}/server`, { method: 'POST' }).catch(() => undefined),
  );
  while ((await leftOver()) < count / 2) await pause();
  third.signal('SIGKILL');
  await third.exited;
  await Promise.all(starts);
  const atKill = await leftOver();
  const fourth = await folder.start();
  const settled = async () => {
    let states = await Promise.all(names.map(stateOf));
    while (states.includes('pending')) {
      await pause();
      states = await Promise.all(names.map(stateOf));
    }
    return states;
  };
  const states = await settled();
  tellReasons(await Promise.all(names.map(server)));
  const goneOn = states.filter((state) => state === 'ready').length;
  const unexplained = states.filter((state) => state === 'silent').length;
  report(`hub killed when there were ${atKill}: servers that went on`, `${goneOn}`);
  report(
    'servers that ended with the hub, without being told why',
    `${unexplained}`,
    '0',
    unexplained === 0,
  );
  const again_ = names.filter((_, index) => states[index] !== 'ready');
  await Promise.all(again_.map((name) => api(`/users/${name}/server`, { method: 'POST' })));
  const readyAgain = (await settled()).filter((state) => state === 'ready').length;
  report(
    'ready after those were started again',
    `${readyAgain} of ${count}`,
    `${count}`,
    readyAgain === count,
  );
  const running = await engine.running(apiUrl);
  const different = new Set(running).size;
  report(
    `each ${engine.noun} / of different servers`,
    `${running.length} / ${different}`,
    `${count} / ${count}`,
    running.length === count && different === count,
  );
  await Promise.all(names.map((name) => api(`/users/${name}/server`, { method: 'DELETE' })));
  await untilGone();
  fourth.signal('SIGTERM');
  await fourth.exited;
  await writeResults(rows, { count, spawner, engine });
}

function tellReasons(models: readonly Model[]): void {
  const reasons = models.flatMap(({ failure }) => failure?.message ?? []);
  for (const reason of new Set(reasons)) process.stderr.write(`  ${reason}\n`);
}

async function memoryText(emptyKib: number, pid: number): Promise<string> {
  const fullKib = await residentKib(pid);
  return `${(emptyKib / 1024).toFixed(0)} / ${(fullKib / 1024).toFixed(0)} MiB`;
}

/** What a hub takes that has started and is quiet: it gives memory back some seconds after its start. */
async function settledKib(pid: number): Promise<number> {
  let min = await residentKib(pid);
  for (let second = 0; second < settlingSeconds; second += 1) {
    await setTimeout(1_000);
    min = Math.min(min, await residentKib(pid));
  }
  return min;
}

async function residentKib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
}

async function writeResults(
  rows: readonly string[][],
  {
    count,
    spawner,
    engine,
  }: { readonly count: number; readonly spawner: string; readonly engine: BenchEngine },
): Promise<void> {
  const isOwn = spawner === 'local-process';
  await writeResultsTable({
    name: isOwn ? 'servers' : `servers-${spawner}`,
    command: isOwn ? 'servers' : `servers --spawner=${spawner}`,
    heading: `${count} users' servers at once${engine.heading}`,
    setting: `${engine.setting}, servers and the measuring program share the cores.`,
    rows,
  });
}

function pause(): Promise<void> {
  return setTimeout(200);
}
