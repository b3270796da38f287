import type { Command } from 'commander';
import { createLockouts, type Lockouts } from '../accounts/lockouts.ts';
import { createLoginThrottle, type ThrottleRecord } from '../authentication/login-throttle.ts';
import { HubError } from '../errors.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub lockouts list|lift`. */
export function addLockoutCommands(program: Command, io: CliIo): void {
  const lockouts = program
    .command('lockouts')
    .description('who has to wait after failed logins')
    .addHelpText('after', '\nExamples:\n  hub lockouts list\n  hub lockouts lift user ada');

  withConfig(lockouts.command('list'))
    .description('list users and addresses that have to wait')
    .action(async (_flags: unknown, command: Command) => {
      await withLockouts(command, io, async (found) => {
        for (const { kind, subject, failures, lockedUntil } of await found.list()) {
          const until = new Date(lockedUntil).toISOString();
          io.stdout.write(`${kind}\t${JSON.stringify(subject)}\t${failures}\t${until}\n`);
        }
      });
    });

  withConfig(lockouts.command('lift'))
    .description('forget the failed logins of a user or an address')
    .addArgument(program.createArgument('<kind>', 'user or address').choices(['user', 'address']))
    .argument('<subject>', 'the name or the address')
    .action(async (kind: ThrottleRecord['kind'], subject: string, _flags, command: Command) => {
      await withLockouts(command, io, async (found) => {
        if (await found.lift({ kind, subject })) return;
        throw new HubError('not_found', 'There are no failed logins to forget.', {
          hint: 'See: hub lockouts list',
        });
      });
      io.stdout.write('The failed logins are forgotten.\n');
    });
}

async function withLockouts(
  command: Command,
  io: CliIo,
  work: (lockouts: Lockouts) => Promise<void>,
): Promise<void> {
  const checked = await loadFor(command, io);
  const { openCliStores } = await import('./cli-stores.ts');
  await using stores = await openCliStores(checked);
  await using keyv = await stores.openKeyv();
  const throttles = ['login-throttle', 'second-factor-throttle'].map((space) =>
    createLoginThrottle({
      ...checked.config.Authenticator,
      records: keyv.space<ThrottleRecord>(space),
    }),
  );
  await work(createLockouts(throttles, stores.audit));
}
