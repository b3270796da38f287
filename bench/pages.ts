/**
 * The pages with very many users, groups and services, on one core: `npm run bench -- pages --users=100000
 * --services=500 --requests=300`. Writes bench/results/pages.md.
 */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { submitLogin } from '../test/support/test-hub.ts';
import { userNames } from './api/contender.ts';
import { startHub } from './api/hub.ts';
import { proxyCore } from './gateway/pinned-process.ts';
import { machineName } from './gateway/report.ts';
import { fillHub, largeGroup } from './pages/large-hub.ts';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    services: { type: 'string', default: '500' },
    requests: { type: 'string', default: '300' },
  },
});
const [userCount, serviceCount, requestCount] = [
  values.users,
  values.services,
  values.requests,
].map(Number) as [number, number, number];
const groupCount = 1_000;
const maxMs = 100;
const maxKiB = 100;
const administrator = 'root';
const progress = (line: string) => process.stderr.write(`${line}\n`);

/** What is looked at; `{name}` is a user in the middle. */
const paths = [
  'hub/home',
  'hub/services',
  'hub/token',
  'hub/sessions',
  'hub/account',
  'hub/admin',
  'hub/admin/users',
  'hub/admin/servers',
  'hub/admin/users?before=',
  'hub/admin/users?after={name}',
  'hub/admin/users?sort=-name',
  'hub/admin/users?sort=created&before=',
  'hub/admin/users?sort=activity',
  'hub/admin/users?sort=-activity&before=',
  'hub/admin/users?sort=server',
  'hub/admin/users?sort=-server&before=',
  'hub/admin/users?sort=server&search=9&before=',
  'hub/admin/users?search=0',
  'hub/admin/users?search=99',
  'hub/admin/users?search={name}',
  'hub/admin/users?search=nobody-has-this',
  'hub/admin/users?show=failed',
  'hub/admin/users?show=failed&sort=activity&before=',
  'hub/admin/users?show=never_active&before=',
  'hub/admin/users?show=administrator',
  `hub/admin/users?group=${largeGroup}`,
  `hub/admin/users?group=${largeGroup}&search=9&show=never_active`,
  'hub/admin/users?group=course-0007',
  'hub/admin/users/{name}',
  'hub/admin/new-users',
  'hub/admin/groups',
  'hub/admin/groups?before=',
  'hub/admin/groups?search=7',
  `hub/admin/groups/${largeGroup}`,
  `hub/admin/groups/${largeGroup}?before=`,
  `hub/admin/groups/${largeGroup}?search=77`,
  'hub/admin/roles',
  'hub/admin/roles/user',
  'hub/admin/services',
  'hub/admin/instances',
  'hub/admin/lockouts',
  'hub/admin/activity',
];

interface Figures {
  readonly path: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the page itself. */
  readonly pageKiB: number;
  /** With its stylesheet and scripts. */
  readonly allKiB: number;
}

const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));

const upstream = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1');
await new Promise((resolve) => upstream.once('listening', resolve));
disposables.defer(() => void upstream.close());
const { port } = upstream.address() as AddressInfo;

const names = userNames(userCount);
progress(`filling a database with ${userCount} users`);
await fillHub(directory, { userNames: names, groupCount });
const hub = disposables.use(
  await startHub({
    core: proxyCore,
    directory,
    program: 'source',
    adminUsers: [administrator],
    services: Array.from({ length: serviceCount }, (_, index) => ({
      name: `tool-${String(index).padStart(3, '0')}`,
      url: `http://127.0.0.1:${port}`,
      info: { title: `Tool number ${index}`, description: 'One of very many.' },
    })),
  }),
);
const url = hub.url ?? '';
const browser = new FakeBrowser();
await submitLogin(browser, url, administrator, 'test');

const figures: Figures[] = [];
for (const template of paths) {
  const path = template.replace('{name}', names[userCount / 2] ?? '');
  figures.push(await measure(path));
  const { p50Ms, p99Ms, allKiB } = figures.at(-1) as Figures;
  progress(`${path}: ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ${allKiB.toFixed(0)} KiB`);
}
const markdown = toMarkdown();
const results = join(import.meta.dirname, 'results');
await mkdir(results, { recursive: true });
await writeFile(join(results, 'pages.md'), markdown);
process.stdout.write(markdown);
if (figures.some(({ p99Ms, allKiB }) => p99Ms > maxMs || allKiB > maxKiB)) process.exitCode = 1;

async function measure(path: string): Promise<Figures> {
  const times: number[] = [];
  let body = '';
  // The first ones compile what the page needs.
  for (let index = -10; index < requestCount; index += 1) {
    const startedAt = performance.now();
    const answer = await browser.request(url + path);
    const ms = performance.now() - startedAt;
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}`);
    body = answer.body;
    if (index >= 0) times.push(ms);
  }
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.ceil(times.length * share) - 1] ?? 0;
  const assets = [...body.matchAll(/(?:src|href)="(\/hub\/static\/[^"]+\.(?:css|js))"/g)];
  let bytes = Buffer.byteLength(body);
  const pageKiB = bytes / 1024;
  for (const [, asset = ''] of assets) {
    bytes += Buffer.byteLength((await browser.request(new URL(asset, url).href)).body);
  }
  return { path, p50Ms: at(0.5), p99Ms: at(0.99), pageKiB, allKiB: bytes / 1024 };
}

function toMarkdown(): string {
  const count = (number: number) => number.toLocaleString('en');
  return [
    '# The pages of a large hub',
    '',
    `${new Date().toISOString().slice(0, 10)}, ${machineName()}, Node ${process.version.slice(1)}; ${count(requestCount)} requests for each page, one after the other. Made by \`npm run bench -- pages\`.`,
    '',
    `- The hub on one core, on SQLite, with ${count(userCount)} users, ${count(groupCount)} groups, of which one has half of the users, and ${count(serviceCount)} services.`,
    '- The size is that of the page with its stylesheet and scripts, not compressed; browsers fetch the latter once.',
    `- Wanted: p99 at most ${maxMs} ms, and at most ${maxKiB} KiB.`,
    '',
    '| page | p50 | p99 | page alone | with all | |',
    '|---|--:|--:|--:|--:|---|',
    ...figures.map(({ path, p50Ms, p99Ms, pageKiB, allKiB }) => {
      const isReached = p99Ms <= maxMs && allKiB <= maxKiB;
      return `| \`/${path}\` | ${p50Ms.toFixed(1)} ms | ${p99Ms.toFixed(1)} ms | ${pageKiB.toFixed(0)} KiB | ${allKiB.toFixed(0)} KiB | ${isReached ? 'reached' : '**missed**'} |`;
    }),
    '',
  ].join('\n');
}
