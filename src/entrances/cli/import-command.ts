import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { AnswerOf } from '../../operations/operations.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { reasonOf } from '../../platform/files/read-file.ts';
import { confirm } from './ask-password.ts';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

const help = () => `
FILE is a list of names, or a CSV file whose first line names its columns: username, display
name, email, groups, role. All is checked first, and what is wrong with a line is said.

Examples:
  ${hubCommand('user import students.csv')}
  ${hubCommand('user import students.csv --undo')}    # within an hour, of those who have not been here`;

/** Users that are asked for in one go. */
const usersAtOnce = 500;

type Result = AnswerOf<'importUsers' | 'undoUserImport'>[number];

interface ImportFlags {
  readonly yes?: boolean;
  readonly undo?: boolean;
}

/** Adds `hub user import`. */
export function addImportCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('import'))
    .description('create the users of a list, with their groups, roles and e-mail addresses')
    .argument('<file>', 'list of names or CSV file')
    .option('-y, --yes', 'do not ask')
    .option('--undo', 'delete the users of the list whom this command created within the last hour')
    .addHelpText('after', help);
  performing(
    command,
    io,
    ['importUsers', 'undoUserImport'],
    async (perform, file: string, { yes, undo }: ImportFlags) => {
      const users = await readUsers(resolve(io.directory ?? '.', file));
      const inParts = async (ask: (part: typeof users) => Promise<readonly Result[]>) => {
        const results: Result[] = [];
        for (let from = 0; from < users.length; from += usersAtOnce)
          results.push(...(await ask(users.slice(from, from + usersAtOnce))));
        return results;
      };
      const say = (results: readonly Result[], wanted: Result['result']) => {
        for (const [index, { name, result, reason }] of results.entries()) {
          const line = `line ${users[index]?.line}: ${name}: ${result}`;
          if (result !== wanted) io.stderr.write(`${line}${reason ? `: ${reason}` : ''}\n`);
        }
        return results.filter(({ result }) => result === wanted).length;
      };
      const agree = async (question: string) => {
        if (yes === true || (await confirm(io, question))) return;
        throw new HubError('bad_request', 'Nothing was done.', {
          hint: 'Use --yes to do it without being asked.',
        });
      };
      if (undo === true) {
        await agree(`Delete the new ones of ${users.length} users?`);
        const results = await inParts((part) =>
          perform('undoUserImport', { body: { usernames: part.map(({ name }) => name) } }),
        );
        io.stdout.write(`Users deleted: ${say(results, 'deleted')}.\n`);
        return;
      }
      const importThem = (dry_run: boolean) =>
        inParts((part) =>
          perform('importUsers', {
            body: { dry_run, users: part.map(({ line: _line, ...user }) => user) },
          }),
        );
      const count = say(await importThem(true), 'create');
      if (count === 0) throw new HubError('conflict', 'None of these users can be created.');
      await agree(`Create ${count} of ${users.length} users?`);
      const results = await importThem(false);
      const made = results.filter(({ result }) => result === 'created').length;
      // Those that were left out are known by now.
      if (made < count) say(results, 'created');
      io.stdout.write(`Users created: ${made}.\n`);
    },
  );
}

async function readUsers(path: string) {
  const [{ readNewUsers }, { decodeCsv }] = await Promise.all([
    import('../../operations/new-users-file.ts'),
    import('../../platform/protocol/csv.ts'),
  ]);
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new HubError('bad_request', `${path} cannot be read: ${reasonOf(error)}`);
  });
  const { users } = await readNewUsers(decodeCsv(bytes));
  return users.map(({ line, ...user }) => ({
    line,
    name: user.name,
    display_name: user.displayName,
    email: user.email,
    groups: [...user.groups],
    roles: [...user.roles],
    admin: user.isAdmin,
  }));
}
