/**
 * A lecture hall that logs in: 200 people with right passwords at one moment, from one address, while
 * somebody asks for the health of the hub and somebody else uses a service whose address is a name and
 * which keeps no connection open. Writes bench/results/storm.md. `node bench/storm.ts --logins=200`
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { createHubFolder } from '../test/support/hub-process.ts';
import { submitLogin, until } from '../test/support/test-hub.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile, startHealthProbe } from './servers/health-probe.ts';
import { createAccounts, password } from './storm/accounts.ts';

const limits = { healthP99Ms: 100, forwardedP99Ms: 150 };

await run(process.argv.slice(2));

async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { logins: { type: 'string', default: '200' } },
  });
  const count = Number(values.logins);
  const names = Array.from({ length: count }, (_, index) => `person-${index}`);
  await using app = await startApp();
  await using folder = await createHubFolder({
    Hub: {
      authenticator_class: 'password',
      log_level: 'warn',
      services: [{ name: 'app', url: app.url, access: 'public' }],
    },
    Authenticator: { allow_all: true },
    Proxy: { access_log: false },
  });
  await createAccounts(folder.directory, names);
  const hub = await folder.start();
  const appUrl = `${folder.url}services/app/`;
  await until(async () => (await fetch(appUrl)).status === 200, 'the service is forwarded to');

  const rows: string[][] = [];
  const report = (what: string, value: string, limit = '', isGood = true) => {
    rows.push([what, value, limit, limit === '' ? '' : isGood ? 'yes' : 'NO']);
    process.stderr.write(`${what}: ${value}\n`);
    if (!isGood) process.exitCode = 1;
  };
  const [health, forwarded] = [
    await startHealthProbe(`${folder.url}hub/health`),
    await startHealthProbe(appUrl),
  ];
  const startedAt = performance.now();
  const durationsMs: number[] = [];
  const statuses = await Promise.all(
    names.map(async (name) => {
      const { status } = await submitLogin(new FakeBrowser(), folder.url, name, password);
      durationsMs.push(performance.now() - startedAt);
      return status;
    }),
  );
  const [healthMs, forwardedMs] = [await health.stop(), await forwarded.stop()];
  const isIn = statuses.filter((status) => status === 302).length;
  durationsMs.sort((left, right) => left - right);
  report('logged in', `${isIn} of ${count}`, `${count}`, isIn === count);
  report(
    'time until they were in: half / all',
    [0.5, 1].map((share) => `${(percentile(durationsMs, share) / 1000).toFixed(1)} s`).join(' / '),
  );
  for (const [what, latenciesMs, limitMs] of [
    ['health', healthMs, limits.healthP99Ms],
    ['forwarded', forwardedMs, limits.forwardedP99Ms],
  ] as const) {
    const [half = 0, max = 0, longest = 0] = [0.5, 0.99, 1].map((share) =>
      percentile(latenciesMs, share),
    );
    report(
      `${what} meanwhile: p50 / p99 / longest of ${latenciesMs.length}`,
      `${half.toFixed(1)} / ${max.toFixed(1)} / ${longest.toFixed(1)} ms`,
      `p99 < ${limitMs} ms`,
      max < limitMs,
    );
  }
  hub.signal('SIGTERM');
  await hub.exited;
  await writeResults(rows, count);
}

async function startApp(): Promise<{ readonly url: string } & AsyncDisposable> {
  const app = fork(join(import.meta.dirname, 'storm', 'app.ts'));
  const [port] = await once(app, 'message');
  return {
    url: `http://localhost:${port}`,
    async [Symbol.asyncDispose]() {
      app.kill();
      await once(app, 'exit');
    },
  };
}

async function writeResults(rows: readonly string[][], count: number): Promise<void> {
  await writeResultsTable({
    name: 'storm',
    heading: `${count} logins at one moment`,
    setting:
      'Each opens the login page and sends the form, all from one address; passwords are compared by Argon2id with 19 MiB ' +
      'and 2 passes. Hub, service and the measuring program share the cores.',
    rows,
  });
}
