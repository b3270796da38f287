import type { Command } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

/** Adds `hub keys list|rotate|revoke`. */
export function addKeyCommands(program: Command, io: CliIo): void {
  const keys = program.command('keys').description('the keys that sign ID tokens');

  const list = withConfig(keys.command('list')).description('list those that have not ended');
  performing(list, io, ['listSigningKeys'], async (perform) => {
    const { keys: found } = await perform('listSigningKeys');
    for (const { id, algorithm, active_from, ends_at, state } of found) {
      io.stdout.write(`${[id, algorithm, state, active_from, ends_at ?? '-'].join('\t')}\n`);
    }
    if (found.length === 0) {
      io.stderr.write('There is none yet: the hub makes them a minute after its first start.\n');
    }
  });

  const rotate = withConfig(keys.command('rotate')).description(
    'make the next ones, which take over in a day',
  );
  performing(rotate, io, ['rotateSigningKeys'], async (perform) => {
    await perform('rotateSigningKeys');
    io.stdout.write('The next keys are published, and sign from tomorrow on.\n');
  });

  const revoke = withConfig(keys.command('revoke')).description(
    'end all of them, or one, at once, as after a leak, and make new ones',
  );
  revoke.argument('[key]', `id of a key, as ${hubCommand('keys list')} says it`);
  performing(revoke, io, ['revokeSigningKeys', 'revokeSigningKey'], async (perform, asked) => {
    const key = typeof asked === 'string' ? asked : undefined;
    if (key === undefined) await perform('revokeSigningKeys');
    else await perform('revokeSigningKey', { params: { key } });
    const ended = key === undefined ? 'The former keys have' : `The key ${key} has`;
    io.stdout.write(`${ended} ended, and new ones sign.\n`);
  });
}
