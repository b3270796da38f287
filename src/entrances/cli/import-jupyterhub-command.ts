import { resolve } from 'node:path';
import type { Command } from 'commander';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

interface ImportFlags {
  readonly from?: string;
  readonly python: string;
  readonly database?: string;
  readonly passwords?: string;
  readonly dryRun?: boolean;
  readonly update?: boolean;
  readonly json?: boolean;
}

const help = () => `
--from runs the file, by the Python of the JupyterHub, and writes a new hub.config.json. --database reads
the database and never writes it; the hub must not run meanwhile, the JupyterHub may.

Examples:
  ${hubCommand('import jupyterhub --from /etc/jupyterhub/jupyterhub_config.py')}
  ${hubCommand('import jupyterhub --database sqlite:////srv/jupyterhub/jupyterhub.sqlite --dry-run')}
  ${hubCommand('import jupyterhub --database postgresql://jupyterhub@db/jupyterhub --update')}`;

/** Adds `hub import jupyterhub`. */
export function addImportJupyterHubCommand(program: Command, io: CliIo): void {
  const command = program.command('import').description('take over what another program has');
  withConfig(command.command('jupyterhub'))
    .description(
      'take over the configuration of a JupyterHub, and its users, groups, roles, tokens, named servers and shares',
    )
    .option(
      '--from <file>',
      'run this jupyterhub_config.py and write what it says as a configuration',
    )
    .option(
      '--python <program>',
      'Python of the JupyterHub, for --from and passwords.dbm',
      'python3',
    )
    .option('--database <url>', 'its database, as in c.JupyterHub.db_url')
    .option(
      '--passwords <where>',
      'native: those of NativeAuthenticator in the database; or the passwords.dbm of FirstUseAuthenticator',
    )
    .option('--dry-run', 'say what would be done, and do nothing')
    .option(
      '--update',
      'also change what was taken over before to what it is there now, and remove tokens, members of groups and holders of roles that are gone there',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(async (flags: ImportFlags, self: Command) => {
      const directory = resolve(io.directory ?? '.');
      const dryRun = flags.dryRun === true;
      if (flags.from !== undefined) {
        const target = resolve(
          directory,
          self.opts<{ config?: string }>().config ?? 'hub.config.json',
        );
        const { importConfig } = await import('./import-config.ts');
        await importConfig({ ...flags, from: resolve(directory, flags.from), dryRun, target }, io);
      }
      if (flags.database === undefined) {
        if (flags.from !== undefined) return;
        throw new HubError('bad_request', 'Nothing is said to be taken over.', {
          hint: 'Name a configuration with --from, or a database with --database.',
        });
      }
      if (flags.from !== undefined && dryRun) {
        throw new HubError('bad_request', 'A dry run is of one of --from and --database.');
      }
      const { config } = await loadFor(self, io);
      const { describe, importInto, planFor } = await import('./import-jupyterhub.ts');
      const plan = await planFor(
        config,
        { ...flags, database: flags.database },
        { directory, env: io.env },
      );
      const result = await importInto(config, plan, { dryRun, update: flags.update === true });
      const notes = { changed: plan.changed, left: [...plan.left, ...result.left] };
      if (flags.json === true) {
        const { counts: taken, given } = result;
        const report = { dry_run: dryRun, taken, given, ...notes };
        io.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
        return;
      }
      io.stdout.write(describe(result, notes, { dryRun }));
      if (dryRun) io.stdout.write('\nNothing was written: this was a dry run.\n');
    });
}
