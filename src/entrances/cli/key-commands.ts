import type { Command } from 'commander';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

/** Adds `hub keys list|rotate|revoke`. */
export function addKeyCommands(program: Command, io: CliIo): void {
  const keys = program.command('keys').description('the keys that sign ID tokens');

  const list = withConfig(keys.command('list')).description('list those that have not ended');
  performing(list, io, ['listSigningKeys'], async (perform) => {
    for (const key of (await perform('listSigningKeys')).keys) {
      const { id, algorithm, active_from, ends_at, lost } = key;
      io.stdout.write(
        `${[id, algorithm, active_from, ends_at ?? '-', lost ? 'lost' : ''].join('\t').trim()}\n`,
      );
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
    'end all of them at once, as after a leak, and make new ones',
  );
  performing(revoke, io, ['revokeSigningKeys'], async (perform) => {
    await perform('revokeSigningKeys');
    io.stdout.write('The former keys have ended, and new ones sign.\n');
  });
}
