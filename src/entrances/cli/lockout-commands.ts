import type { Command } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

/** Adds `hub lockouts list|lift`. */
export function addLockoutCommands(program: Command, io: CliIo): void {
  const lockouts = program
    .command('lockouts')
    .description('who has to wait after failed logins')
    .addHelpText(
      'after',
      `\nExamples:\n  ${hubCommand('lockouts list')}\n  ${hubCommand('lockouts lift user ada')}`,
    );

  const list = withConfig(lockouts.command('list')).description(
    'list users and addresses that have to wait',
  );
  performing(list, io, ['listLockouts'], async (perform) => {
    const { lockouts: waiting } = await perform('listLockouts');
    // Beside the output, which programs read line by line.
    if (waiting.length === 0) io.stderr.write('No user and no address has to wait.\n');
    for (const { kind, subject, failures, locked_until } of waiting)
      io.stdout.write(`${kind}\t${JSON.stringify(subject)}\t${failures}\t${locked_until}\n`);
  });

  const lift = withConfig(lockouts.command('lift'))
    .description('forget the failed logins of a user or an address')
    .addArgument(program.createArgument('<kind>', 'user or address').choices(['user', 'address']))
    .argument('<subject>', 'the name or the address');
  performing(lift, io, ['liftLockout'], async (perform, kind: string, subject: string) => {
    await perform('liftLockout', { query: { kind, subject } });
    io.stdout.write('The failed logins are forgotten.\n');
  });
}
