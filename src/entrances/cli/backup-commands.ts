import { resolve } from 'node:path';
import type { Command } from 'commander';
import { messageOf } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { DatabaseLocation } from '../../platform/store/database-backup.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub backup` and `hub restore`. */
export function addBackupCommands(program: Command, io: CliIo): void {
  const location = async (command: Command) => {
    const { config } = await loadFor(command, io);
    const { directory, Hub } = config;
    const database: DatabaseLocation = { url: Hub.database_url, directory };
    return { database, Hub, directory };
  };

  withConfig(program.command('backup'))
    .argument('<file>', 'a new file')
    .description('copy the database to a file, also while the hub runs')
    .action(async (file: string, _flags: unknown, command: Command) => {
      const { database, Hub, directory } = await location(command);
      const { backUpDatabase, requireNew } = await import(
        '../../platform/store/database-backup.ts'
      );
      const path = pathOf(file, io);
      requireNew(path);
      const { noteBackup } = await import('../../platform/store/last-backup.ts');
      try {
        await backUpDatabase(database, path, Hub.backup?.passphrase);
      } catch (error) {
        // Where the database is what fails, that is the news.
        await noteBackup(database, { problem: String(messageOf(error)) }).catch(() => undefined);
        throw error;
      }
      await noteBackup(database, { file: path });
      const keys =
        Hub.cookie_secret === undefined
          ? resolve(directory, Hub.cookie_secret_file)
          : 'Hub.cookie_secret';
      io.stdout.write(
        `The database is in ${file}. Keep elsewhere: the configuration, and ${keys}\n`,
      );
    });

  withConfig(program.command('restore'))
    .argument('<file>', `what ${hubCommand('backup')} has written`)
    .description(
      'replace the database of a hub that does not run by a backup, of SQLite or PostgreSQL',
    )
    .option(
      '--end-tokens',
      'end all tokens, logins, codes, links and grants of the backup, as after a theft',
    )
    .action(
      async (file: string, { endTokens }: { readonly endTokens?: boolean }, command: Command) => {
        const { database, Hub } = await location(command);
        const { restoreDatabase } = await import('../../platform/store/database-backup.ts');
        const { kept, endedCount } = await restoreDatabase(database, pathOf(file, io), {
          passphrase: Hub.backup?.passphrase,
          endsTokens: endTokens === true,
        });
        const note = kept === undefined ? '' : ` What was there is now ${kept}.`;
        const tokens =
          endTokens === true
            ? `${endedCount} tokens, logins, codes, links and grants were ended: everybody logs in again.`
            : 'Tokens revoked since then are good again: see docs/how-to/recover-from-disaster.md';
        io.stdout.write(`The database is as it was in ${file}.${note}\n${tokens}\n`);
      },
    );
}

/** Against the folder in which the command is given. */
function pathOf(file: string, { directory }: CliIo): string {
  return directory === undefined ? resolve(file) : resolve(directory, file);
}
