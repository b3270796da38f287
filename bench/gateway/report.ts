import { cpus } from 'node:os';

/** One line of the table. */
export interface Row {
  readonly name: string;
  /** What is counted, such as requests or MiB. */
  readonly unit: string;
  readonly unitsPerSecond: number;
  readonly cpuMicros: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly residentMiB?: number;
}

/** One thing that must or should be reached. */
export interface Criterion {
  readonly label: string;
  readonly figure: number;
  readonly goal: number;
  /** `max`: the figure must stay below the goal. */
  readonly bound: 'least' | 'most';
  readonly unit: string;
  /** Whether it is only aimed at. */
  readonly isAim?: boolean;
  /** The same ratio in units per second of the proxy's CPU. */
  readonly byCpu?: number;
}

/** Everything one run found out. */
export interface Report {
  readonly date: string;
  readonly machine: string;
  readonly node: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly setting: readonly string[];
  readonly rows: readonly Row[];
  readonly criteria: readonly Criterion[];
}

/** The machine in a few words. */
export function machineName(): string {
  const all = cpus();
  return `${all[0]?.model.trim() ?? 'unknown'}, ${all.length} cores`;
}

/** Whether the goal is reached. */
export function isReached({ figure, goal, bound }: Criterion): boolean {
  return bound === 'least' ? figure >= goal : figure <= goal;
}

/** The report as a page of Markdown. */
export function toMarkdown(report: Report): string {
  const { rows, criteria, setting } = report;
  return [
    '# The gateway beside its peers',
    '',
    `${report.date.slice(0, 10)}, ${report.machine}, Node ${report.node}; ` +
      `medians of ${report.rounds} interleaved rounds of ${report.seconds} s. ` +
      'Made by `npm run bench -- gateway`.',
    '',
    ...setting.map((line) => `- ${line}`),
    '',
    '| goal | ratio or figure | by CPU time | wanted | |',
    '|---|--:|--:|--:|---|',
    ...criteria.map((criterion) => {
      const { label, figure, goal, bound, unit, byCpu, isAim = false } = criterion;
      const verdict = isReached(criterion) ? 'reached' : isAim ? 'aim missed' : '**missed**';
      const cpu = byCpu === undefined ? '' : `${byCpu.toFixed(2)}${unit}`;
      const sign = bound === 'least' ? '≥' : '≤';
      return `| ${label} | ${figure.toFixed(2)}${unit} | ${cpu} | ${sign} ${goal}${unit} | ${verdict} |`;
    }),
    '',
    '| what | per second | CPU each | p50 | p99 | resident |',
    '|---|--:|--:|--:|--:|--:|',
    ...rows.map((row) => {
      const { name, unit, unitsPerSecond, cpuMicros, p50Ms, p99Ms, residentMiB } = row;
      return (
        `| ${name} | ${Math.round(unitsPerSecond).toLocaleString('en')} ${unit} | ` +
        `${cpuMicros.toFixed(1)} µs | ${milliseconds(p50Ms)} | ${milliseconds(p99Ms)} | ` +
        `${residentMiB === undefined ? '' : `${residentMiB.toFixed(0)} MiB`} |`
      );
    }),
    '',
  ].join('\n');
}

function milliseconds(value: number | undefined): string {
  return value === undefined ? '' : `${value.toFixed(1)} ms`;
}
