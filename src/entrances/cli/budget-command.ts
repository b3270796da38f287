import { type Command, Option } from 'commander';
import type { AnswerOf, BodyOf } from '../../operations/operations.ts';
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

type Amounts = { readonly [Name in keyof typeof options]?: string };
type Flags = Amounts & { readonly user?: string; readonly reason: string };
type SetFlags = Amounts & {
  readonly [Name in 'user' | 'group' | 'profile' | 'sharing' | 'whenOver']?: string;
} & { readonly period: string };
type Definition = BodyOf<'setBudget'>;

/** Adds `hub budget list`, `set`, `remove` and `grant`. */
export function addBudgetCommand(program: Command, io: CliIo): void {
  const budget = program.command('budget').description('how much may be used');

  const list = withConfig(budget.command('list'))
    .description('list the budgets')
    .option('--json', 'as JSON, for programs');
  performing(list, io, ['listBudgets'], async (perform, { json }: { readonly json?: boolean }) => {
    const { budgets } = await perform('listBudgets', {});
    io.stdout.write(json === true ? `${JSON.stringify(budgets, undefined, 2)}\n` : asText(budgets));
  });

  const set = withAmounts(
    withConfig(budget.command('set'))
      .description('set a budget at run time, or another in its place')
      .argument('<budget>', 'name of the budget')
      .option('--user <name>', 'of this user; * of each user')
      .option('--group <name>', 'of the members of this group')
      .option('--profile <name>', 'of all servers of this profile')
      .requiredOption('--period <period>', 'day, week, month, or a time such as 48h or 7d')
      .addOption(
        new Option('--sharing <how>', 'how members of a group use it').choices([
          'together',
          'divided',
        ]),
      )
      .addOption(
        new Option('--when-over <what>', 'what becomes of running servers').choices([
          'stop',
          'keep',
        ]),
      ),
  );
  performing(set, io, ['setBudget'], async (perform, name: string, flags: SetFlags) => {
    const { user, group, profile, period, sharing, whenOver } = flags;
    const given = { user, group, profile, sharing, when_over: whenOver };
    const known = Object.entries(given).filter(([, value]) => value !== undefined);
    const body = { ...Object.fromEntries(known), period, ...amountsIn(flags) } as Definition;
    await perform('setBudget', { params: { budget: name }, body });
    io.stdout.write(`The budget ${name} is set.\n`);
  });

  const remove = withConfig(budget.command('remove'))
    .description('remove a budget that was set at run time')
    .argument('<budget>', 'name of the budget');
  performing(remove, io, ['removeBudget'], async (perform, name: string) => {
    await perform('removeBudget', { params: { budget: name } });
    io.stdout.write(`The budget ${name} is removed.\n`);
  });

  const grant = withAmounts(
    withConfig(budget.command('grant'))
      .description('grant more of a budget until its period ends')
      .argument('<budget>', 'name of the budget')
      .option('--user <name>', 'to one user; to all who use it unless given')
      .requiredOption('--reason <text>', 'for the audit log'),
  );
  performing(grant, io, ['grantBudget'], async (perform, name: string, flags: Flags) => {
    const body = {
      ...amountsIn(flags),
      reason: flags.reason,
      ...(flags.user !== undefined && { user: flags.user }),
    };
    const { expires_at: at } = await perform('grantBudget', { params: { budget: name }, body });
    io.stdout.write(`Granted until ${exactTime(new Date(at))}.\n`);
  });
}

function withAmounts(command: Command): Command {
  return command
    .option('--server-hours <number>', 'hours of running servers')
    .option('--cpu-hours <number>', 'hours of cores')
    .option('--gib-hours <number>', 'hours of GiB of memory')
    .option('--gpu-hours <number>', 'hours of GPUs')
    .option('--cost <number>', 'by the prices');
}

function amountsIn(flags: Amounts): Readonly<Record<string, number>> {
  const amounts = Object.entries(options).flatMap(([flag, key]) => {
    const given = flags[flag as keyof typeof options];
    return given === undefined ? [] : [[key, Number(given)] as const];
  });
  return Object.fromEntries(amounts);
}

function asText(budgets: AnswerOf<'listBudgets'>['budgets']): string {
  const lines = budgets.map((budget) => {
    const { name, user, group, profile, period, configured } = budget;
    const limits = Object.values(options).flatMap((key) => {
      const limit = budget[key];
      return limit === undefined ? [] : `${limit} ${key.replace('_', ' ')}`;
    });
    const whose = Object.entries({ user, group, profile }).flatMap(([kind, value]) =>
      value === undefined ? [] : `${kind} ${value}`,
    );
    return `${name}: ${limits.join(', ')} per ${period}, ${whose.join()}${configured ? ' (configuration)' : ''}\n`;
  });
  return lines.join('');
}
