import type { Command } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { parseDuration } from './parse-duration.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

/** Adds `hub server extend`. */
export function addServerCommands(program: Command, io: CliIo): void {
  const server = program
    .command('server')
    .description('servers of users')
    .addHelpText('after', `\nExamples:\n  ${hubCommand('server extend ada --keep-running 8h')}`);
  const extend = withConfig(server.command('extend'))
    .description('keep a server that is not used from being stopped')
    .argument('<user>', 'name of its user')
    .argument('[server]', 'name of a named server')
    .option('--keep-running <time>', 'for how long, such as 8h, though it is idle', parseDuration);
  performing(
    extend,
    io,
    ['extendDefaultServer', 'extendNamedServer'],
    async (perform, name: string, named: string | undefined, flags: { keepRunning?: number }) => {
      const body = { keep_running_seconds: flags.keepRunning };
      const { stops_at } =
        named === undefined
          ? await perform('extendDefaultServer', { params: { name }, body })
          : await perform('extendNamedServer', { params: { name, server: named }, body });
      const stops = stops_at === null ? 'No time limit stops it' : `It is stopped at ${stops_at}`;
      io.stdout.write(`${stops}, unless it is used until then.\n`);
    },
  );
}
