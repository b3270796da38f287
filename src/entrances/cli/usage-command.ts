import { type Command, Option } from 'commander';
import type { BodyOf } from '../../operations/operations.ts';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

type By = NonNullable<NonNullable<BodyOf<'exportUsage'>>['by']>;

interface Flags {
  readonly user?: string;
  readonly by?: By;
  readonly month?: string;
  readonly json?: boolean;
}

/** Adds `hub usage`. */
export function addUsageCommand(program: Command, io: CliIo): void {
  const command = withConfig(program.command('usage'))
    .description('what servers used in a month')
    .option('--user <name>', 'of one user, by day')
    .addOption(new Option('--by <kind>', 'summed up by').choices(['user', 'group', 'profile']))
    .option('--month <month>', 'such as 2026-01, by UTC; this one unless given')
    .option('--json', 'as JSON, for programs');
  performing(command, io, ['exportUsage', 'getUsageOfUser'], async (perform, flags: Flags) => {
    const { user, by, month, json = false } = flags;
    const time = month === undefined ? {} : { month };
    if (user !== undefined) {
      const found = await perform('getUsageOfUser', { params: { name: user }, query: time });
      print(
        found.days.map(({ day, ...amounts }) => ({ name: day, ...amounts })),
        found,
      );
      return;
    }
    const found = await perform('exportUsage', { body: { ...time, ...(by && { by }) } });
    print(found.items, found);

    function print(rows: readonly ({ readonly name: string } & Amounts)[], whole: unknown): void {
      io.stdout.write(json ? `${JSON.stringify(whole, undefined, 2)}\n` : asTable(rows));
    }
  });
}

type Amounts = Readonly<Record<(typeof columns)[number], number>>;
const columns = ['server_hours', 'cpu_hours', 'gib_hours', 'gpu_hours', 'cost'] as const;

function asTable(rows: readonly ({ readonly name: string } & Amounts)[]): string {
  const width = Math.max(4, ...rows.map(({ name }) => name.length));
  const head = columns.map((column) => column.toUpperCase().padStart(14)).join('');
  const lines = rows.map(
    (row) =>
      `${row.name.padEnd(width)}${columns.map((column) => row[column].toFixed(2).padStart(14)).join('')}\n`,
  );
  return `${'NAME'.padEnd(width)}${head}\n${lines.join('')}`;
}
