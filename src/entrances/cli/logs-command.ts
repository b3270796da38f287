import { type Command, InvalidArgumentError, Option } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { maxOutputLines } from '../../spawning/processes/output-feed.ts';
import type { CliIo } from './cli-io.ts';
import { parseDuration } from './parse-duration.ts';
import { loadFor, withConfig } from './with-config.ts';

const help = () => `
NAME is that of a service, of a user for their default server, or USER/SERVER. The lines are
those the hub keeps of the present run: ${maxOutputLines} at most. --since goes by when the hub
read them; those from before it started count as written when the output last changed. The log of the hub itself goes to its
standard error; under systemd: journalctl -u hub -f

Examples:
  ${hubCommand('logs report-service')}
  ${hubCommand('logs report-service --since 10m')}
  ${hubCommand('logs ada -f')}
  ${hubCommand('logs ada/gpu --lines 50')}`;

/** Adds `hub logs`. It asks the running hub with the key of `Hub.cookie_secret`, so it needs no token. */
export function addLogsCommand(program: Command, io: CliIo): void {
  withConfig(program.command('logs'))
    .description('show what a service or a server writes')
    .argument('<program>', 'service, user or user/server')
    .option('-f, --follow', 'keep printing new lines until Ctrl-C')
    .option('-n, --lines <number>', 'how many of the last lines (default: all)', parseLines)
    .option('--since <time>', 'leave out older lines: 90 seconds, 10m, 2h or 1d', parseDuration)
    .addOption(new Option('--service', 'NAME is that of a service').conflicts('server'))
    .addOption(new Option('--server', 'NAME is that of a user, or USER/SERVER'))
    .addHelpText('after', help)
    .action(async (name: string, flags: LogsFlags, command: Command) => {
      const { config } = await loadFor(command, io);
      const { printLogs } = await import('./print-logs.ts');
      await printLogs(config, {
        io,
        name,
        kind: flags.service === true ? 'service' : flags.server && 'server',
        lines: flags.lines,
        sinceSeconds: flags.since,
        follows: flags.follow === true,
      });
    });
}

interface LogsFlags {
  readonly follow?: true;
  readonly lines?: number;
  readonly since?: number;
  readonly service?: true;
  readonly server?: true;
}

function parseLines(text: string): number {
  const lines = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (lines <= maxOutputLines) return lines;
  throw new InvalidArgumentError(`It is a number from 0 to ${maxOutputLines}.`);
}
