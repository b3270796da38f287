import type { Command } from 'commander';
import type { CliIo } from './cli-io.ts';
import { asking } from './performing.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub status`. It reads the database, so it needs neither a token nor a hub that answers. */
export function addStatusCommand(program: Command, io: CliIo, version: string): void {
  asking(withConfig(program.command('status')), ['listServices'])
    .description(
      'show the instances of the hub, what services and servers do, and how many are logged in',
    )
    .option('--json', 'as one JSON object, for scripts')
    .action(async (flags: { readonly json?: boolean }, command: Command) => {
      const { config } = await loadFor(command, io);
      const { reportStatus } = await import('./status-report.ts');
      await reportStatus(config, { io, version, json: flags.json === true });
    });
}
