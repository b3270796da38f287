import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { budgetConnections } from '../../src/platform/http/connection-budget.ts';
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
export const busy = { shareOpen: 0.5, requestsPerSecond: 1, sockets: 2, loginMinutes: 10 };
const sizes = [50, 500, 5_000, 50_000, 1_000_000];

/** What one of each costs: a row of the page. */
interface Cost {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** File of `bench/results`. */
  readonly source: string;
}

/** Of a browser to one server: its WebSockets, and one for its requests. */
const connectionsEach = busy.sockets + 1;
const { maxConnections } = budgetConnections({ configured: undefined, openFiles: undefined });

/** The size whose figures stand for one of each; what the calculation gives for the others is checked by theirs. */
const measuredPeople = 500;
const checkedSizes = [50, 500, 5_000];
/** Where a process that forwards is about as busy as it should be: the fewer come at once, the more each costs. */
const largestSize = 5_000;

function capacityOf(row: string, people: number): number {
  return measured('capacity', `${row}, ${people.toLocaleString('en')} people`);
}

function costs() {
  const open = measuredPeople * busy.shareOpen;
  const each = (
    what: string,
    row: string,
    count: number,
    perUnit: number,
    unit: string,
    people = measuredPeople,
  ) => ({
    what,
    value: Number(((capacityOf(row, people) / count) * perUnit).toPrecision(3)),
    unit,
    source: 'capacity',
  });
  return {
    idle: cost(
      'memory of the hub before anybody comes',
      'capacity',
      'memory of the hub before they come, 500 people',
      'MiB',
    ),
    used: cost(
      'the same once the first have logged in and started servers',
      'capacity',
      'memory of the hub with all pages open, 50 people',
      'MiB',
    ),
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
    request: each(
      "processor time of a request to a user's server, 2,500 a second on as many connections",
      'cores that forward',
      largestSize * busy.shareOpen * busy.requestsPerSecond,
      1e6,
      'µs',
      largestSize,
    ),
    loaded: cost(
      'the same at full load, when many are read at once',
      'gateway',
      'hub, guarded, 1 KiB',
      'µs',
      2,
    ),
    start: each(
      'processor time of the start of a server, 20 at once',
      'processor time of all starts',
      open,
      1e3,
      'ms',
    ),
    login: each(
      'processor time of a login with a password',
      'processor time of all logins',
      measuredPeople,
      1e3,
      'ms',
    ),
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
    all.used.value + (servers * all.server.value + sockets * all.socket.value) / 1024;
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
      adviceFor(arriving, forwarding, open * connectionsEach),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const checks = checkedSizes.flatMap((people) => {
    const open = people * busy.shareOpen;
    const calculated = [
      ['memory of the hub with all pages open', memoryMiB(open, open * busy.sockets), ', MiB'],
      ['processor time of all logins', (people * all.login.value) / 1e3, ', seconds'],
      ['processor time of all starts', (open * all.start.value) / 1e3, ', seconds'],
      ['cores that forward', (open * busy.requestsPerSecond * all.request.value) / 1e6, ''],
    ] as const;
    return calculated.map(
      ([what, value, unit]) =>
        `| ${people.toLocaleString('en')} | ${what}${unit} | ${value.toPrecision(3)} | ${capacityOf(what, people)} |`,
    );
  });
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

Half of each core is left free. What ends first is the time to start servers and to compare passwords while people arrive: a login
by another provider needs none of it, more time to arrive needs fewer hubs. Then cores that forward and connections, of which a
process takes ${maxConnections.toLocaleString('en')} unless \`Proxy.max_connections\` says otherwise, with two open files each:
[gateways](../how-to/gateways.md) add both one by one. Then memory, by [several hubs](../how-to/run-several-hubs.md); last the
writes of one PostgreSQL. From 50,000 people on this is calculated and was never tried.

## The calculation beside measurements

\`npm run bench -- capacity\` has so many people log in, start servers, keep pages open and send requests. A login
and a start cost what they did at ${measuredPeople} people, a request what it did at ${largestSize.toLocaleString('en')}: where few come at once, each wakes the hub.

| people | what | calculated | measured |
|--:|---|--:|--:|
${checks.join('\n')}
`;
}

/** A process works on one core, and half of that is left free. */
function adviceFor(arriving: number, forwarding: number, connections: number): string {
  if (arriving + forwarding <= 0.5 && connections <= maxConnections) return 'one hub, SQLite';
  const hubs = Math.max(2, Math.ceil(arriving * 2)).toLocaleString('en');
  const gateways = Math.max(2, Math.ceil(forwarding * 2), Math.ceil(connections / maxConnections));
  return `PostgreSQL, ${hubs} hubs, ${gateways.toLocaleString('en')} gateways`;
}

function size(mib: number): string {
  return mib < 2048 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}
