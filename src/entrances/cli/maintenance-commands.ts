import { type Command, InvalidArgumentError } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { exactTime } from '../../platform/texts/text.ts';
import type { CliIo } from './cli-io.ts';
import { parseDuration } from './parse-duration.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

interface BeginFlags {
  readonly text?: string;
  readonly at?: string;
  readonly for?: number;
}

const examples = () => `
Examples:
  ${hubCommand('maintenance begin --text "New disks." --for 2h')}
  ${hubCommand('maintenance begin --at 2027-01-29T18:00:00Z --for 2h')}
  ${hubCommand('maintenance end')}`;

/** Adds `hub maintenance begin|end`. */
export function addMaintenanceCommands(program: Command, io: CliIo): void {
  const maintenance = program
    .command('maintenance')
    .description('keep servers from being started')
    .addHelpText('after', examples);

  const begin = withConfig(maintenance.command('begin'))
    .description('begin maintenance now, or by itself at a later time')
    .option('--text <text>', 'what users are told')
    .option('--at <time>', 'when it begins, as 2027-01-29T18:00:00Z (default: now)', parseTime)
    .option(
      '--for <time>',
      'how long it lasts, such as 90m or 2h (default: until its end)',
      parseDuration,
    );
  performing(begin, io, ['putMaintenance'], async (perform, flags: BeginFlags) => {
    const body = { text: flags.text ?? '', since: flags.at, expires_in: flags.for };
    const { active, since, until } = await perform('putMaintenance', { body });
    const end = until === null ? 'it is ended' : exactTime(new Date(until));
    const begun = active
      ? 'Maintenance is on'
      : `Maintenance begins at ${exactTime(new Date(since ?? 0))}`;
    io.stdout.write(`${begun}, until ${end}.\n`);
  });

  const end = withConfig(maintenance.command('end')).description(
    'end maintenance, or call it off before it begins',
  );
  performing(end, io, ['deleteMaintenance'], async (perform) => {
    await perform('deleteMaintenance');
    io.stdout.write('There is no maintenance: servers can be started.\n');
  });
}

function parseTime(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime()) || !/(?:Z|[+-]\d\d:\d\d)$/.test(text))
    throw new InvalidArgumentError('It is a time with its zone, such as 2027-01-29T18:00:00Z.');
  return time.toISOString();
}
