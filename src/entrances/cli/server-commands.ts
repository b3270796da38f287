import type { Command } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { parseDuration } from './parse-duration.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

/** Adds `hub server start|stop|extend`. */
export function addServerCommands(program: Command, io: CliIo): void {
  const group = program
    .command('server')
    .description('start and stop servers of users, and keep them running')
    .addHelpText('after', `\nExamples:\n  ${hubCommand('server extend ada --keep-running 8h')}`);
  const addCommand = (name: string, description: string) =>
    withConfig(group.command(name))
      .description(description)
      .argument('<user>', 'name of its user')
      .argument('[server]', 'name of a named server');

  const start = addCommand('start', 'start a server with the options it was last started with');
  performing(
    start,
    io,
    ['startDefaultServer', 'startNamedServer'],
    async (perform, name: string, server: string | undefined) => {
      const { ready } =
        server === undefined
          ? await perform('startDefaultServer', { params: { name } })
          : await perform('startNamedServer', { params: { name, server } });
      io.stdout.write(ready ? 'The server is running.\n' : 'The server is starting.\n');
    },
  );

  const stop = addCommand('stop', 'stop a server');
  performing(
    stop,
    io,
    ['stopDefaultServer', 'stopNamedServer'],
    async (perform, name: string, server: string | undefined) => {
      const stopping: { readonly message: string } | undefined =
        server === undefined
          ? await perform('stopDefaultServer', { params: { name } })
          : await perform('stopNamedServer', { params: { name, server } });
      io.stdout.write(`${stopping?.message ?? 'The server has stopped.'}\n`);
    },
  );

  const extend = addCommand('extend', 'keep a server that is not used from being stopped').option(
    '--keep-running <time>',
    'for how long, such as 8h, though it is idle',
    parseDuration,
  );
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
