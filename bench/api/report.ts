/** One thing that was measured against a goal, or without one. */
export interface Goal {
  readonly label: string;
  readonly figure: number;
  readonly goal?: number;
  /** `max`: the figure must stay below the goal. */
  readonly bound: 'least' | 'most';
  readonly unit: string;
  /** The same ratio in work per second of the hub's own CPU time. */
  readonly byCpu?: number;
}

/** One line of the table of raw figures. */
export interface Line {
  readonly name: string;
  readonly perSecond?: number;
  readonly cpuMicros?: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly residentMiB?: number;
}

/** Everything one run found out. */
export interface ApiReport {
  /** Date, machine and versions. */
  readonly heading: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: number;
  readonly goals: readonly Goal[];
  readonly lines: readonly Line[];
}

/** The report as a page of Markdown. */
export function toMarkdown(report: ApiReport): string {
  const { heading, rounds, seconds, connections, goals, lines } = report;
  return [
    "# The REST API beside JupyterHub's",
    '',
    `${heading}; medians of ${rounds} interleaved rounds of ${seconds} s. Made by \`npm run bench -- api\`.`,
    '',
    '- Each hub on one core, wrk on the other; SQLite, the same 10,000 users, the dummy authenticator, ' +
      `${connections} connections, logs of requests off, a second of the same load before each round.`,
    "- JupyterHub's API is asked directly, not through its proxy, by a service that may administrate " +
      'users; so is the hub. "Of a user" means the token of an ordinary user.',
    '- A ratio is the median over the rounds of the ratio within each round; by CPU time it is that of ' +
      "the processes' own time for one request, which other load on the machine changes less.",
    '- JupyterHub creates 500 users, in its empty database; the others are copied into it.',
    '- While nothing is written, the hub remembers the pages of users that were asked for last; "all pages in turn" ' +
      'are more than it remembers, each read from the database.',
    '- Servers on record are of a machine that lost its power: recorded as running, their processes gone.',
    '',
    '| what | ratio or figure | by CPU time | wanted | |',
    '|---|--:|--:|--:|---|',
    ...goals.map(row),
    '',
    '| what | per second | CPU each | p50 | p99 | resident |',
    '|---|--:|--:|--:|--:|--:|',
    ...lines.map(
      ({ name, perSecond, cpuMicros, p50Ms, p99Ms, residentMiB }) =>
        `| ${name} | ${perSecond === undefined ? '' : Math.round(perSecond).toLocaleString('en')} | ` +
        `${withUnit(cpuMicros, 'µs')} | ${withUnit(p50Ms, 'ms')} | ${withUnit(p99Ms, 'ms')} | ` +
        `${withUnit(residentMiB, 'MiB')} |`,
    ),
    '',
  ].join('\n');
}

function row({ label, figure, goal, bound, unit, byCpu }: Goal): string {
  const cpu = byCpu === undefined ? '' : `${byCpu.toFixed(2)}${unit}`;
  if (goal === undefined) return `| ${label} | ${figure.toFixed(2)}${unit} | ${cpu} | | |`;
  const isReached = bound === 'least' ? figure >= goal : figure <= goal;
  const wanted = `${bound === 'least' ? '≥' : '≤'} ${goal}${unit}`;
  const verdict = isReached ? 'reached' : '**missed**';
  return `| ${label} | ${figure.toFixed(2)}${unit} | ${cpu} | ${wanted} | ${verdict} |`;
}

function withUnit(value: number | undefined, unit: string): string {
  return value === undefined ? '' : `${value.toFixed(1)} ${unit}`;
}
