import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatedNote } from './markdown.ts';

const results = join(import.meta.dirname, '../../bench/results');

/**
 * The first number of a cell in the results of `npm run bench`. Throws for a row that is not there, so that no figure
 * of the page outlives its measurement.
 */
function measured(name: string, row: string, column = 1): number {
  const text = readFileSync(join(results, `${name}.md`), 'utf8');
  const line = text.split('\n').find((each) => each.startsWith(`| ${row} |`));
  const figure = /\d[\d,]*(?:\.\d+)?/.exec(line?.split(' | ')[column] ?? '')?.[0];
  if (figure === undefined) throw new Error(`bench/results/${name}.md has no "${row}"`);
  return Number(figure.replaceAll(',', ''));
}

/** How busy people are, where they are most. */
const busy = { shareOpen: 0.5, requestsPerSecond: 1, sockets: 3, loginMinutes: 10 };
const sizes = [50, 500, 5_000, 50_000, 1_000_000];

/** What one of each costs: a row of the page. */
interface Cost {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** File of `bench/results`. */
  readonly source: string;
}

function costs() {
  const stormSeconds = /all \| [^|]*\/ ([\d.]+) s/.exec(
    readFileSync(join(results, 'storm.md'), 'utf8'),
  )?.[1];
  return {
    idle: cost('memory of the hub, idle', 'api', 'resident memory from the package, idle', 'MiB'),
    server: cost(
      'memory of a running server',
      'servers',
      'memory of the hub for each running server',
      'KiB',
    ),
    socket: cost(
      'memory of an idle WebSocket',
      'gateway',
      '(f) each of 2000 idle WebSockets',
      'KiB',
    ),
    request: cost(
      "processor time of a request to a user's server",
      'gateway',
      'hub, guarded, 1 KiB',
      'µs',
      2,
    ),
    start: cost(
      'processor time of the start of a server',
      'guards',
      'processor time of the hub for one of 1000 starts, 40 at once',
      'ms',
    ),
    login: {
      what: 'processor time of a login with a password, at most',
      value: Math.round((Number(stormSeconds) * 2 * 1000) / 200),
      unit: 'ms',
      source: 'storm',
    },
    call: cost('processor time of a call of the API', 'api', 'hub, GET /user, of a user', 'µs', 2),
    write: cost('processor time of a recorded write, SQLite', 'audit', 'create a user', 'µs'),
    postgres: cost(
      'the same, PostgreSQL, which takes most of it',
      'audit-postgres',
      'create a user',
      'µs',
    ),
  } satisfies Record<string, Cost>;
}

function cost(what: string, source: string, row: string, unit: string, column = 1): Cost {
  return { what, value: measured(source, row, column), unit, source };
}

export function capacityPage(): string {
  const all = costs();
  const memoryMiB = (servers: number, sockets: number) =>
    all.idle.value + (servers * all.server.value + sockets * all.socket.value) / 1024;
  const rows = sizes.map((people) => {
    const open = people * busy.shareOpen;
    const forwarding = (open * busy.requestsPerSecond * all.request.value) / 1e6;
    const loginsPerSecond = people / (busy.loginMinutes * 60);
    const arriving = (loginsPerSecond * (all.login.value + all.start.value)) / 1000;
    const writes = loginsPerSecond * 4;
    const cells = [
      people.toLocaleString('en'),
      size(memoryMiB(open, open * busy.sockets)),
      forwarding.toFixed(2),
      arriving.toFixed(2),
      writes.toFixed(1),
      adviceFor(arriving, forwarding),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const checks = [
    [
      '200 servers that start at once, seconds of one core',
      ((200 * all.start.value) / 1000).toFixed(1),
      `${measured('servers', 'time until all were ready')} s until all were ready, on two cores that their apps and the measuring program share`,
    ],
    [
      'memory with 2,000 running servers, started here; measured where they were taken over from another hub',
      size(memoryMiB(2_000, 0)),
      size(
        measured('cluster', 'memory of an instance with 10,000 routes and 2,000 running servers'),
      ),
    ],
    [
      'requests a second to servers on one core',
      Math.round(1e6 / all.request.value).toLocaleString('en'),
      `${measured('gateway', 'hub, guarded, 1 KiB').toLocaleString('en')}`,
    ],
  ];
  return `${generatedNote}

# Capacity

What a hub takes, measured by \`npm run bench\` on two cores of a shared server with AMD EPYC; the files are in
\`bench/results\`. Your machine differs: measure there. What users' servers take themselves is not in any of it,
and is nearly always what ends first.

## What one of each costs

| what | measured | file |
|---|--:|---|
${Object.values(all)
  .map(({ what, value, unit, source }) => `| ${what} | ${value} ${unit} | \`${source}.md\` |`)
  .join('\n')}

## How much that is for so many people

If ${busy.shareOpen * 100} % of them have a server open at the busiest time, each with ${busy.sockets} WebSockets and ${busy.requestsPerSecond} request a second, and all log
in by a password and start their server within ${busy.loginMinutes} minutes:

| people | memory of all hubs | cores that forward | cores while they arrive | writes a second meanwhile | what it takes |
|--:|--:|--:|--:|--:|---|
${rows.join('\n')}

Half of each core is left free. What ends first is the time to compare passwords while people arrive: a login by another provider
needs none of it, more time to arrive needs fewer hubs. Then cores that forward, which [gateways](../how-to/gateways.md) add one
by one; then memory, by [several hubs](../how-to/run-several-hubs.md); last the writes of one PostgreSQL. From 50,000 people on
this is calculated and was never tried.

## The calculation beside measurements

| what | calculated | measured |
|---|--:|---|
${checks.map((row) => `| ${row.join(' | ')} |`).join('\n')}
`;
}

/** A process works on one core, and half of that is left free. */
function adviceFor(arriving: number, forwarding: number): string {
  if (arriving + forwarding <= 0.5) return 'one hub, SQLite';
  const hubs = Math.max(2, Math.ceil(arriving * 2)).toLocaleString('en');
  return `PostgreSQL, ${hubs} hubs, ${Math.max(2, Math.ceil(forwarding * 2)).toLocaleString('en')} gateways`;
}

function size(mib: number): string {
  return mib < 2048 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}
