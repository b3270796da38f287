/**
 * `hub backup` and `hub restore` of a PostgreSQL database with very many users, and what a backup costs those who use the
 * hub meanwhile. Writes bench/results/backup.md. `npm run bench -- backup --users=100000 --backups=5 --seconds=10
 * --rate=20`
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { hashSecret } from '../src/platform/crypto/hash.ts';
import { openDatabase } from '../src/platform/store/open-database.ts';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { createHubFolder, spawnHubProcess } from '../test/support/hub-process.ts';
import { queryPostgres, startPostgres } from '../test/support/postgres.ts';
import { submitLogin } from '../test/support/test-hub.ts';
import { userNames } from './api/contender.ts';
import { exactCpuSeconds } from './gateway/pinned-process.ts';
import { fillHub } from './pages/large-hub.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile } from './servers/health-probe.ts';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    backups: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '20' },
  },
});
const [userCount, backupCount, seconds, rate] = [
  values.users,
  values.backups,
  values.seconds,
  values.rate,
].map(Number) as [number, number, number, number];
const groupCount = 1_000;
const intervalMs = 1_000 / rate;
const limitSeconds = 60;

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await using disposables = new AsyncDisposableStack();
const postgres = disposables.use(await startPostgres());
const databaseUrl = await postgres.createDatabase();
const folder = disposables.use(
  await createHubFolder({
    Hub: { database_url: databaseUrl, log_level: 'warn' },
    Authenticator: { allow_all: true, admin_users: ['root'] },
  }),
);
const names = userNames(userCount);
const tokenOf = (name: string) => `${name}-token-of-a-script`;
process.stderr.write(`filling a database with ${userCount} users\n`);
await fillHub(folder.directory, { userNames: names, groupCount, databaseUrl });
await giveTokens();
await queryPostgres(databaseUrl, 'analyze');

const hub = await folder.start();
const browser = new FakeBrowser();
await submitLogin(browser, folder.url, 'root', 'test');
let asked = 0;
await load(pause(3_000), { times: [], cpuSeconds: 0 });
const without: Load = { times: [], cpuSeconds: 0 };
const during: Load = { times: [], cpuSeconds: 0 };
const backupSeconds: number[] = [];
for (let index = 0; index < backupCount; index += 1) {
  await load(pause(seconds * 1_000), without);
  const running = command('backup', `during-${index}`);
  await load(running, during);
  backupSeconds.push(await running);
}
hub.signal('SIGTERM');
await hub.exited;

const before = await digests(databaseUrl);
const restSeconds = await command('backup', 'at-rest');
const { size } = await stat(join(folder.directory, 'at-rest'));
const restoredUrl = await postgres.createDatabase();
await folder.configure({ Hub: { database_url: restoredUrl } });
const restoreSeconds = await command('restore', 'at-rest');
const after = await digests(restoredUrl);
const tables = [...new Set([...before.keys(), ...after.keys()])];
const differing = tables.filter((table) => before.get(table) !== after.get(table));
for (const table of differing)
  process.stderr.write(`${table}: ${before.get(table)} became ${after.get(table)}\n`);

const [usual, busy] = [without, during].map(({ times }) =>
  times.toSorted((one, other) => one - other),
) as [number[], number[]];
const p99 = percentile(usual, 0.99);
const slowest = busy.at(-1) ?? 0;
const tooSlow = busy.filter((ms) => ms > 2 * p99).length;
const text = (times: readonly number[]) =>
  `p50 ${percentile(times, 0.5).toFixed(1)}, p99 ${percentile(times, 0.99).toFixed(1)}, slowest ${(times.at(-1) ?? 0).toFixed(1)} ms of ${times.length.toLocaleString('en')}`;
const cpuOf = ({ times, cpuSeconds }: Load) =>
  `${((cpuSeconds * 1_000) / times.length).toFixed(1)} ms`;
const verdict = (isGood: boolean) => (isGood ? 'yes' : 'NO');
const within = (what: string, taken: number) => [
  what,
  `${taken.toFixed(1)} s`,
  `≤ ${limitSeconds} s`,
  verdict(taken <= limitSeconds),
];
const rows = [
  ['requests without a backup', text(usual), '', ''],
  [
    'requests during a backup',
    text(busy),
    `slowest ≤ ${(2 * p99).toFixed(1)} ms, 2 × the p99 without`,
    verdict(slowest <= 2 * p99),
  ],
  ['of those, slower than that', String(tooSlow), '', ''],
  ['without a backup, slower than that', String(usual.filter((ms) => ms > 2 * p99).length), '', ''],
  ['processor time of the hub for a request without a backup', cpuOf(without), '', ''],
  ['the same during a backup', cpuOf(during), '', ''],
  within(`the longest of ${backupCount} backups under that load`, Math.max(...backupSeconds)),
  within('a backup without load', restSeconds),
  ['its file', `${(size / 1e6).toFixed(1)} MB`, '', ''],
  within('restored into an empty database', restoreSeconds),
  [
    `tables of ${tables.length} that are not the same then`,
    String(differing.length),
    '0',
    verdict(differing.length === 0),
  ],
];
await writeResultsTable({
  name: 'backup',
  heading: 'Backups of a large database',
  database: 'PostgreSQL',
  setting:
    `${userCount.toLocaleString('en')} users with a token each, all in one of ${groupCount.toLocaleString('en')} groups and half of them in another one. ` +
    `The load is ${rate} requests a second, whether or not earlier ones are answered: six kinds of reads of API and pages, and the making of a token. Hub, database, backup and load share the cores, with other programs of this machine.`,
  rows,
  isPartial: userCount !== 100_000,
});
if (rows.some((row) => row.at(-1) === 'NO')) process.exitCode = 1;

async function giveTokens(): Promise<void> {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase(databaseUrl, { directory: folder.directory, log });
  const users = await database.kysely.selectFrom('users').select(['id', 'name']).execute();
  const chunk = 1_000;
  for (let from = 0; from < users.length; from += chunk) {
    const tokens = users.slice(from, from + chunk).map(({ id, name }) => ({
      id: crypto.randomUUID(),
      token_hash: hashSecret(tokenOf(name)),
      kind: 'user' as const,
      user_id: id,
      scopes: '["inherit"]',
      note: 'a script',
      created_at: Date.now(),
    }));
    await database.kysely.insertInto('access_tokens').values(tokens).execute();
  }
}

interface Load {
  /** Milliseconds that each took, infinitely many if it failed. */
  readonly times: number[];
  /** Of the hub. */
  cpuSeconds: number;
}

/** Sends requests until something has ended, at a fixed rate. */
async function load(work: Promise<unknown>, into: Load): Promise<void> {
  const cpuBefore = exactCpuSeconds(hub);
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const answers: Promise<number>[] = [];
  const since = performance.now();
  while (!isOver) {
    answers.push(askNext());
    await pause(Math.max(0, since + answers.length * intervalMs - performance.now()));
  }
  await ended;
  into.times.push(...(await Promise.all(answers)));
  into.cpuSeconds += exactCpuSeconds(hub) - cpuBefore;
}

async function askNext(): Promise<number> {
  asked += 1;
  // Through all of them, in no order.
  const name = names[(asked * 7_919) % names.length] ?? '';
  const admin = { authorization: 'token admin-service-token' };
  const api =
    (path: string, init: RequestInit = { headers: admin }) =>
    async () => {
      const answer = await fetch(folder.apiUrl + path, init);
      return { status: answer.status, body: await answer.text() };
    };
  const page = (path: string) => () => browser.request(`${folder.url}hub/${path}`);
  const kinds = [
    api(`/users?limit=50&offset=${(asked * 50) % userCount}`),
    api(`/users/${name}`),
    api('/user', { headers: { authorization: `token ${tokenOf(name)}` } }),
    api(`/users/${name}/tokens`, {
      method: 'POST',
      headers: { ...admin, 'content-type': 'application/json' },
      body: '{"note":"another"}',
    }),
    page('home'),
    page(`admin/users?after=${name}`),
    page(`admin/users/${name}`),
  ];
  const startedAt = performance.now();
  const answer = await kinds[asked % kinds.length]?.();
  if (answer?.status === 200 || answer?.status === 201) return performance.now() - startedAt;
  process.stderr.write(
    `a request was answered with ${answer?.status}: ${answer?.body.slice(0, 500)}\n`,
  );
  return Number.POSITIVE_INFINITY;
}

/** Runs a command with a file to its end. How many seconds that took. */
async function command(name: string, file: string): Promise<number> {
  const since = performance.now();
  await using run = spawnHubProcess([name, file, '--config', folder.configFile], {
    cwd: folder.directory,
  });
  const code = await run.exited;
  if (code !== 0) throw new Error(`hub ${name} failed: ${run.stderr()}`);
  return (performance.now() - since) / 1_000;
}

/**
 * A digest of the rows of each table, in the order of what they say; but for the notices of changes, which are for hubs
 * that run, and in no backup.
 */
async function digests(url: string): Promise<ReadonlyMap<string, string>> {
  const found = await queryPostgres<{ name: string }>(
    url,
    "select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'changes' order by 1",
  );
  const digestOf = async (name: string) => {
    const [row] = await queryPostgres<{ digest: string }>(
      url,
      `select count(*) || ' rows, ' || coalesce(md5(string_agg(md5(t::text), '' order by t::text collate "C")), '') as digest
       from "${name}" as t`,
    );
    return row?.digest ?? '';
  };
  const all = new Map<string, string>();
  for (const { name } of found) all.set(name, await digestOf(name));
  return all;
}
