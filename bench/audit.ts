/**
 * What the audit log costs: the same changes and reads by a hub with it and one without, in turns, by the hubs'
 * own CPU time: `npm run bench -- audit --rounds=40 --database=sqlite`. Writes bench/results/audit.md, or
 * audit-postgres.md.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/support/postgres.ts';
import { type ApiContender, adminToken, createUsers, userNames } from './api/contender.ts';
import { startHub } from './api/hub.ts';
import { exactCpuSeconds, proxyCore } from './gateway/pinned-process.ts';
import { machineName } from './gateway/report.ts';
import { median } from './gateway/rounds.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '40' },
    /** `sqlite` or `postgres`. */
    database: { type: 'string', default: 'sqlite' },
  },
});
const rounds = Number(values.rounds);
const mostLostPercent = 5;
const connections = 4;
const requestsPerTurn = 100;
const warmUpTurns = 8;
/** After so long what was recorded is in the indexed log. */
const movedAfterMs = 7_000;
const members = userNames(1_000);

const off = `--import=${join(import.meta.dirname, 'audit', 'off.ts')}`;
const progress = (line: string) => process.stderr.write(`${line}\n`);
const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));
const postgres =
  values.database === 'postgres' ? disposables.use(await startPostgres()) : undefined;

interface Side {
  readonly hub: ApiContender;
  readonly agent: Agent;
  /** How many requests of each kind it has had: none is sent twice. */
  readonly sent: Map<Work, number>;
}

interface Work {
  readonly label: string;
  readonly method: string;
  /** Done to one user after the other, by number. */
  path(index: number): string;
  body?(index: number): unknown;
  readonly perTurn?: number;
}

async function startSide(name: string, options: string[]) {
  const databaseUrl = await postgres?.createDatabase();
  const hub = disposables.use(
    await startHub({
      core: proxyCore,
      directory: join(directory, name),
      program: 'source',
      nodeOptions: options,
      ...(databaseUrl !== undefined && { databaseUrl }),
    }),
  );
  await createUsers(hub, members, 500);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  disposables.defer(() => agent.destroy());
  return { hub, agent, sent: new Map() } satisfies Side;
}

const memberOf = (index: number) => members[index % members.length] ?? '';
const work: readonly Work[] = [
  { label: 'create a user', method: 'POST', path: (index) => `/users/new-${index}` },
  {
    label: 'create 500 users in a request',
    method: 'POST',
    path: () => '/users',
    body: (index) => ({ usernames: userNames(500).map((name) => `${name}-${index}`) }),
    perTurn: 4,
  },
  {
    label: 'create a token',
    method: 'POST',
    path: (index) => `/users/${memberOf(index)}/tokens`,
    body: () => ({ note: 'bench' }),
  },
  {
    label: 'make a user an administrator, and not',
    method: 'PATCH',
    path: (index) => `/users/${memberOf(Math.floor(index / 2))}`,
    body: (index) => ({ admin: index % 2 === 0 }),
  },
  { label: 'create a group', method: 'POST', path: (index) => `/groups/group-${index}` },
  { label: 'read a user', method: 'GET', path: (index) => `/users/${memberOf(index)}` },
  { label: 'read a page of 50 users', method: 'GET', path: () => '/users?limit=50' },
];

function send({ hub, agent }: Side, { method, path, body }: Work, index: number): Promise<void> {
  const url = hub.apiUrl + path(index);
  const headers = { authorization: `token ${adminToken}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers }, (answer) => {
      const { statusCode = 0 } = answer;
      answer.resume();
      answer.once('end', () => {
        if (statusCode < 300) resolve();
        else reject(new Error(`${method} ${url} was answered with ${statusCode}`));
      });
    });
    sent.once('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body(index)));
  });
}

/** Microseconds of CPU for one request. */
async function turn(side: Side, each: Work): Promise<number> {
  const { perTurn = requestsPerTurn } = each;
  const start = side.sent.get(each) ?? 0;
  side.sent.set(each, start + perTurn);
  const indexes = Array.from({ length: perTurn }, (_, index) => start + index);
  const before = exactCpuSeconds(side.hub.process);
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let index = indexes.shift(); index !== undefined; index = indexes.shift()) {
        await send(side, each, index);
      }
    }),
  );
  return ((exactCpuSeconds(side.hub.process) - before) / perTurn) * 1e6;
}

const withAudit = await startSide('with', []);
const without = await startSide('without', [off]);
const lines: string[] = [];
let isMissed = false;
for (const each of work) {
  for (let round = 0; round < warmUpTurns; round += 1) {
    await turn(withAudit, each);
    await turn(without, each);
  }
  await sleep(movedAfterMs);
  const sides = [withAudit, without];
  const before = sides.map(({ hub }) => exactCpuSeconds(hub.process));
  const costs: { on: number; off: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Who comes second finds the caches of the processor otherwise than who comes first.
    const [first, second] = round % 2 === 0 ? [withAudit, without] : [without, withAudit];
    const [one, other] = [await turn(first, each), await turn(second, each)];
    costs.push(round % 2 === 0 ? { on: one, off: other } : { on: other, off: one });
  }
  const on = median(costs.map((cost) => cost.on));
  const offMicros = median(costs.map((cost) => cost.off));
  const lost = (1 - median(costs.map((cost) => cost.off / cost.on))) * 100;
  await sleep(movedAfterMs);
  const [allOn = 0, allOff = 0] = sides.map(
    ({ hub }, index) => exactCpuSeconds(hub.process) - (before[index] ?? 0),
  );
  const lostInAll = (1 - allOff / allOn) * 100;
  isMissed ||= lost > mostLostPercent;
  const verdict = lost <= mostLostPercent ? 'reached' : '**missed**';
  const line = `| ${each.label} | ${on.toFixed(0)} µs | ${offMicros.toFixed(0)} µs | ${lost.toFixed(1)} % | ${verdict} | ${lostInAll.toFixed(1)} % |`;
  progress(line);
  lines.push(line);
}

const markdown = [
  '# What the audit log costs',
  '',
  `${new Date().toISOString().slice(0, 10)}, ${machineName()}, Node ${process.version.slice(1)}, ${postgres === undefined ? 'SQLite' : 'PostgreSQL'}; medians of ${rounds} turns each of ${requestsPerTurn} requests over ${connections} connections. Made by \`npm run bench -- audit\`.`,
  '',
  '- CPU time of the hub for one request, all its threads. Lost: the share of requests that it serves less in the same time.',
  '- Lost is the median over the turns of both, one after the other.',
  '- In all: lost when all of the time counts, also that of the thread that moves the rows into the indexed log later on, while no request waits.',
  `- Wanted: at most ${mostLostPercent} % lost.`,
  '',
  '| what | with | without | lost | | in all |',
  '|---|--:|--:|--:|---|--:|',
  ...lines,
  '',
].join('\n');
await writeFile(
  join(import.meta.dirname, 'results', postgres === undefined ? 'audit.md' : 'audit-postgres.md'),
  markdown,
);
process.stdout.write(markdown);
if (isMissed) process.exitCode = 1;
