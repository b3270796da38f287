import type { Command } from 'commander';
import { HubError } from '../errors.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub setup-link`. */
export function addSetupLinkCommand(program: Command, io: CliIo): void {
  withConfig(program.command('setup-link'))
    .description('print a new link that makes the first administrator; earlier links end')
    .action(async (_flags: unknown, command: Command) => {
      const checked = await loadFor(command, io);
      const { openCliStores } = await import('./cli-stores.ts');
      await using stores = await openCliStores(checked);
      await using passwords = await stores.openPasswords();
      if (!passwords.isUsed) {
        throw new HubError('bad_request', 'Users log in by an external provider only.', {
          hint: 'Name the first administrators in Authenticator.admin_users.',
        });
      }
      const link = await stores.setUpLink.issue();
      if (link === undefined) {
        throw new HubError('conflict', 'There is an administrator already.', {
          hint: 'To set a new password: hub user passwd NAME',
        });
      }
      io.stdout.write(`${link.href}\n`);
    });
}
