/**
 * `hub import jupyterhub` of a database with very many users and tokens, and what the tokens are worth afterwards. Writes
 * bench/results/import.md. `npm run bench -- import --users=10000 --tokens=20000 --sample=1000`
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { linesOfSqlite, textOf } from '../src/platform/store/backup-rows.ts';
import { createHubFolder, startHubProcess } from '../test/support/hub-process.ts';
import { hashOf, tablesOf54 } from '../test/support/old-jupyterhub.ts';
import { userNames } from './api/contender.ts';
import { exactCpuSeconds, onCore, proxyCore } from './gateway/pinned-process.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile } from './servers/health-probe.ts';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '10000' },
    tokens: { type: 'string', default: '20000' },
    sample: { type: 'string', default: '1000' },
  },
});
const [userCount, tokenCount, sampleCount] = [values.users, values.tokens, values.sample].map(
  Number,
) as [number, number, number];
const groupCount = 200;
const laterRounds = 5;
/** How many of one kind are asked for before as many of the other. */
const inTurn = 20;
const limits = { seconds: 60, firstMs: 10, laterMs: 1 };

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await using folder = await createHubFolder({ Hub: { log_level: 'warn' } });
const databaseFile = join(folder.directory, 'hub.sqlite');
const oldFile = join(folder.directory, 'jupyterhub.sqlite');
const tokens = fillOldDatabase();
const rows: string[][] = [];
let isGood = true;

const dry = await importOnce('--dry-run');
note('files that a dry run leaves', Number(existsSync(databaseFile)), 0);
const real = await importOnce();
const expected = { users: userCount, tokens: tokenCount };
for (const [kind, count] of Object.entries(expected)) {
  const added = real.taken[kind]?.added;
  if (added !== count)
    throw new Error(`${added} ${kind} were taken over: ${JSON.stringify(real.taken)}`);
}
note('the import, in one transaction', real.seconds, limits.seconds, 's', 1);
rows.push(['its dry run', `${dry.seconds.toFixed(1)} s`, '', '']);
const whole = await digest();
const again = await importOnce();
note('tables that a second import changes', Number((await digest()) !== whole), 0);
note('things that it says to have changed', changesOf(again), 0);
await importOnce('--dry-run');
await importOnce('--dry-run', '--update');
note('tables that a dry run changes', Number((await digest()) !== whole), 0);
await useTokens();

await writeResultsTable({
  name: 'import',
  heading: 'A JupyterHub taken over',
  setting:
    `A database as JupyterHub 5.4 has it, of SQLite, with ${userCount.toLocaleString('en')} users in ${groupCount} groups and ${tokenCount.toLocaleString('en')} tokens, of which ${sampleCount.toLocaleString('en')} are asked for, one request after the other, in turns with tokens that were made here. ` +
    'Times are of the client, while other programs used the machine; the time of the processor is that of the hub.',
  rows,
  isPartial: userCount !== 10_000 || tokenCount !== 20_000,
});
if (!isGood) process.exitCode = 1;

function note(what: string, value: number, limit: number, unit = '', digits = 0): void {
  const isReached = value <= limit;
  isGood &&= isReached;
  const must = limit === 0 ? '0' : `≤ ${limit} ${unit}`.trim();
  rows.push([what, `${value.toFixed(digits)} ${unit}`.trim(), must, isReached ? 'yes' : 'NO']);
}

interface Import {
  readonly seconds: number;
  readonly taken: Readonly<
    Record<string, { readonly added: number; readonly changed: number; readonly removed: number }>
  >;
}

async function importOnce(...flags: readonly string[]): Promise<Import> {
  const since = performance.now();
  const command = [
    'import',
    'jupyterhub',
    '--database',
    `sqlite:///${oldFile}`,
    '--json',
    ...flags,
  ];
  const { code, stdout, stderr } = await folder.run(command);
  if (code !== 0) throw new Error(`the import failed: ${stderr}`);
  const { taken } = JSON.parse(stdout) as Pick<Import, 'taken'>;
  return { seconds: (performance.now() - since) / 1_000, taken };
}

function changesOf({ taken }: Import): number {
  return Object.values(taken).reduce(
    (sum, each) => sum + each.added + each.changed + each.removed,
    0,
  );
}

/** Of all rows of all tables. */
async function digest(): Promise<string> {
  const hash = createHash('sha256');
  for await (const text of textOf(linesOfSqlite(databaseFile))) hash.update(text);
  return hash.digest('hex');
}

/** Answers with the tokens, and whose they are: as JupyterHub makes them, 32 hexadecimal digits. */
function fillOldDatabase(): { readonly name: string; readonly token: string }[] {
  using database = new DatabaseSync(oldFile);
  database.exec(tablesOf54);
  database.exec(`pragma synchronous = off; begin;
    delete from shares; delete from share_codes; delete from spawners; delete from api_tokens; delete from services;
    delete from user_role_map; delete from group_role_map; delete from service_role_map; delete from roles;
    delete from users; delete from groups; delete from user_group_map`);
  const group = database.prepare('insert into groups (id, name) values (?, ?)');
  for (let id = 1; id <= groupCount; id += 1) group.run(id, `course-${id}`);
  const at = '2025-01-02 03:04:05.678901';
  const user = database.prepare('insert into users values (?, ?, ?, ?, ?)');
  const member = database.prepare('insert into user_group_map (user_id, group_id) values (?, ?)');
  const names = userNames(userCount);
  for (const [index, name] of names.entries()) {
    user.run(index + 1, name, index % 1_000 === 0 ? 1 : 0, at, at);
    member.run(index + 1, (index % groupCount) + 1);
  }
  const insert = database.prepare(`insert into api_tokens
    values (?, ?, null, ?, ?, 'jupyterhub', null, ?, null, ?, 'a script', '["inherit"]')`);
  const made = Array.from({ length: tokenCount }, (_, index) => {
    const token = randomBytes(16).toString('hex');
    const owner = index % userCount;
    insert.run(index + 1, owner + 1, hashOf(token), token.slice(0, 4), at, at);
    return { name: names[owner] ?? '', token };
  });
  database.exec('commit');
  return made;
}

/** The first request of each token, and later ones, beside those of tokens that were made here. */
async function useTokens(): Promise<void> {
  await using hub = await startHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    wrapper: onCore(proxyCore, []),
  });
  const step = Math.max(1, Math.floor(tokens.length / sampleCount));
  const sample = tokens.filter((_, index) => index % step === 0).slice(0, sampleCount);
  const own: typeof sample = [];
  for (const { name } of sample) own.push({ name, token: await issue(name) });
  let refused = 0;
  const askAll = async (some: typeof sample, into: Figures) => {
    const before = exactCpuSeconds(hub);
    for (const each of some) {
      const { ms, isGood: isAnswered } = await ask(each);
      into.times.push(ms);
      if (!isAnswered) refused += 1;
    }
    into.cpuSeconds += exactCpuSeconds(hub) - before;
  };
  const empty = (): Figures => ({ times: [], cpuSeconds: 0 });
  const first = { old: empty(), own: empty() };
  const later = { old: empty(), own: empty() };
  for (let round = 0; round <= laterRounds; round += 1) {
    const { old, own: ofOwn } = round === 0 ? first : later;
    for (let from = 0; from < sample.length; from += inTurn) {
      await askAll(sample.slice(from, from + inTurn), old);
      await askAll(own.slice(from, from + inTurn), ofOwn);
    }
  }
  note('requests with tokens that were refused', refused, 0);
  for (const [what, { old, own: ofOwn }, limit] of [
    ['first request', first, limits.firstMs],
    ['later request', later, limits.laterMs],
  ] as const) {
    const [ofOld, ofNew] = [summaryOf(old), summaryOf(ofOwn)];
    rows.push([`${what} with an old token`, ofOld.text, '', '']);
    rows.push([`${what} with one that was made here`, ofNew.text, '', '']);
    note(`${what}: how much longer with an old token, p50`, ofOld.p50 - ofNew.p50, limit, 'ms', 2);
  }
  hub.signal('SIGTERM');
  await hub.exited;
}

interface Figures {
  readonly times: number[];
  cpuSeconds: number;
}

function summaryOf({ times, cpuSeconds }: Figures) {
  const sorted = times.toSorted((one, other) => one - other);
  const [p50, p99] = [percentile(sorted, 0.5), percentile(sorted, 0.99)];
  const cpuMs = (cpuSeconds * 1_000) / times.length;
  const text = `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, processor ${cpuMs.toFixed(2)} ms`;
  return { p50, text };
}

async function ask({ name, token }: { readonly name: string; readonly token: string }) {
  const since = performance.now();
  const answer = await fetch(`${folder.apiUrl}/user`, {
    headers: { authorization: `token ${token}` },
  });
  const user = (await answer.json()) as { readonly name?: string };
  const ms = performance.now() - since;
  return { ms, isGood: answer.status === 200 && user.name === name };
}

async function issue(name: string): Promise<string> {
  const answer = await fetch(`${folder.apiUrl}/users/${name}/tokens`, {
    method: 'POST',
    headers: { authorization: 'token admin-service-token', 'content-type': 'application/json' },
    body: '{"note":"a script"}',
  });
  const { token } = (await answer.json()) as { token?: string };
  if (token === undefined) throw new Error(`no token for ${name}: ${answer.status}`);
  return token;
}
