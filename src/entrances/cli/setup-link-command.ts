import type { Command } from 'commander';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

/** Adds `hub setup-link`. */
export function addSetupLinkCommand(program: Command, io: CliIo): void {
  const command = withConfig(program.command('setup-link')).description(
    'print a new link that makes the first administrator; earlier links end',
  );
  performing(command, io, ['createSetUpLink'], async (perform) => {
    io.stdout.write(`${(await perform('createSetUpLink')).url}\n`);
  });
}
