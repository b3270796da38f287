/**
 * How long a user waits from the click on *Start server* until Jupyter's page is there, with processes that were started
 * ahead (`LocalProcessSpawner.warm`) and without. Writes bench/results/warm.md.
 * `npm run bench -- warm --clicks=100`
 */

import { parseArgs } from 'node:util';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { guardedNotebook } from '../test/support/guarded-notebook.ts';
import { createHubFolder } from '../test/support/hub-process.ts';
import { pathOf, requires } from '../test/support/requires.ts';
import { submitForm, submitLogin, until } from '../test/support/test-hub.ts';
import { writeResultsTable } from './results-table.ts';

const fullCount = 100;
const limits = { p50Ms: 1_000, p99Ms: 2_000 };
const pool = 2;

const { values } = parseArgs({
  options: { clicks: { type: 'string', default: String(fullCount) } },
});
const clicks = Number(values.clicks);
if (!requires('jupyter-notebook', 'python3', 'ipykernel')) throw new Error('Jupyter is missing');
const warm = await measure(pool);
const cold = await measure(0);
const p50 = quantile(warm, 0.5);
const p99 = quantile(warm, 0.99);
const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
await writeResultsTable({
  name: 'warm',
  heading: 'From the click to Jupyter',
  setting: `${clicks} users start Jupyter Notebook behind the gateway one after the other, ${pool} processes wait, and a page of Jupyter is asked for until it is there. Hub, servers and the measuring program share the cores.`,
  rows: [
    ['started ahead, p50', seconds(p50), '< 1 s', p50 < limits.p50Ms ? 'yes' : 'NO'],
    ['started ahead, p99', seconds(p99), '< 2 s', p99 < limits.p99Ms ? 'yes' : 'NO'],
    ['not started ahead, p50', seconds(quantile(cold, 0.5)), '', ''],
    ['not started ahead, p99', seconds(quantile(cold, 0.99)), '', ''],
  ],
  isPartial: clicks !== fullCount,
});

/** Milliseconds of each click. */
async function measure(count: number): Promise<number[]> {
  const notebook = guardedNotebook();
  const modules = ['notebook.notebookapp'];
  const program = { program: notebook.cmd[0], python: pathOf('python3'), modules, count };
  await using folder = await createHubFolder({
    Hub: { cleanup_servers: true, log_level: 'debug' },
    Spawner: { ...notebook, access: 'gateway', start_timeout: 300, http_timeout: 300 },
    ...(count > 0 && { LocalProcessSpawner: { warm: [program] } }),
  });
  const hub = await folder.start();
  const times: number[] = [];
  for (let at = 0; at < clicks; at += 1) {
    const name = `user-${at}`;
    const browser = new FakeBrowser();
    await submitLogin(browser, folder.url, name, 'test');
    const home = await browser.open(`${folder.url}hub/home`);
    const [form = ''] = /<form[^>]*action="[^"]*spawn[\s\S]*?<\/form>/.exec(home.body) ?? [];
    const isFull = () => hub.logged(/^warm process waits$/).length >= (count === 0 ? 0 : at + count);
    await until(isFull, 'the pool is full');
    const since = performance.now();
    await submitForm(browser, { ...home, body: form }, {});
    await until(async () => {
      const page = await browser.open(`${folder.url}user/${name}/tree`);
      return page.status === 200 && page.body.includes('Jupyter');
    }, 'Jupyter is there');
    times.push(performance.now() - since);
    const stop = await fetch(`${folder.apiUrl}/users/${name}/server`, {
      method: 'DELETE',
      headers: { authorization: 'token admin-service-token' },
    });
    if (!stop.ok) throw new Error(`${name}: ${stop.status}`);
  }
  hub.signal('SIGTERM');
  await hub.exited;
  return times;
}

function quantile(figures: readonly number[], share: number): number {
  const sorted = figures.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
