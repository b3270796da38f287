import type { Command } from 'commander';
import { exactTime } from '../../platform/texts/text.ts';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

const options = {
  serverHours: 'server_hours',
  cpuHours: 'cpu_hours',
  gibHours: 'gib_hours',
  gpuHours: 'gpu_hours',
  cost: 'cost',
} as const;

type Flags = { readonly user?: string; readonly reason: string } & {
  readonly [Name in keyof typeof options]?: string;
};

/** Adds `hub budget grant`. */
export function addBudgetCommand(program: Command, io: CliIo): void {
  const budget = program.command('budget').description('how much may be used');
  const grant = withConfig(budget.command('grant'))
    .description('grant more of a budget until its period ends')
    .argument('<budget>', 'name of the budget')
    .option('--user <name>', 'to one user; to all who use it unless given')
    .requiredOption('--reason <text>', 'for the audit log')
    .option('--server-hours <number>', 'hours of running servers')
    .option('--cpu-hours <number>', 'hours of cores')
    .option('--gib-hours <number>', 'hours of GiB of memory')
    .option('--gpu-hours <number>', 'hours of GPUs')
    .option('--cost <number>', 'by the prices');
  performing(grant, io, ['grantBudget'], async (perform, name: string, flags: Flags) => {
    const amounts = Object.entries(options).flatMap(([flag, key]) => {
      const given = flags[flag as keyof typeof options];
      return given === undefined ? [] : [[key, Number(given)] as const];
    });
    const body = {
      ...Object.fromEntries(amounts),
      reason: flags.reason,
      ...(flags.user !== undefined && { user: flags.user }),
    };
    const { expires_at: at } = await perform('grantBudget', { params: { budget: name }, body });
    io.stdout.write(`Granted until ${exactTime(new Date(at))}.\n`);
  });
}
