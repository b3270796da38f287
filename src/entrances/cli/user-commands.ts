import type { Command } from 'commander';
import type { AnswerOf } from '../../operations/operations.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { exactTime } from '../../platform/texts/text.ts';
import { askNewPassword, confirmDeletion } from './ask-password.ts';
import type { CliIo } from './cli-io.ts';
import { addImportCommand } from './import-command.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

type Account = AnswerOf<'viewAccounts'>['accounts'][number];

/** Adds `hub user add|passwd|account|volume|import|invite|group|list|suspend|unsuspend|delete`. */
export function addUserCommands(program: Command, io: CliIo): void {
  const user = program.command('user').description('manage user accounts');
  addAddCommand(user, io);
  addPasswdCommand(user, io);
  addAccountCommand(user, io);
  addVolumeCommand(user, io);
  addImportCommand(user, io);
  addInviteCommand(user, io);
  addGroupCommand(user, io);
  addListCommand(user, io);
  addSuspensionCommands(user, io);
  addDeleteCommand(user, io);
}

function addAddCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('add'))
    .description('create an account and set its password')
    .argument('<name>', 'name of the new user')
    .option('--admin', 'make the user an administrator')
    .option('--authenticator <name>', 'by which the user will come, where there are several')
    .option('--no-password', 'set none: the user logs in another way, or by an invitation')
    .option('--password-stdin', 'read the password from standard input')
    .option('--must-change', 'the first login must choose another password');
  performing(
    command,
    io,
    ['viewNewAccount', 'createAccount'],
    async (perform, typed: string, flags: AddFlags) => {
      const { authenticator, admin = false } = flags;
      const query = authenticator === undefined ? {} : { authenticator };
      const account = await perform('viewNewAccount', { params: { name: typed }, query });
      const { name } = account;
      const password =
        flags.password !== false && account.takes_password
          ? { text: await askPassword(io, flags), must_change: flags.mustChange === true }
          : undefined;
      await perform('createAccount', {
        params: { name: typed },
        body: { admin, authenticator, password },
      });
      io.stdout.write(`Created ${describe({ name, admin })}.\n`);
    },
  );
}

function addPasswdCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('passwd'))
    .description("set a user's password and end all their logins")
    .argument('<user>', 'name of the user')
    .option('--password-stdin', 'read the password from standard input')
    .option('--must-change', 'the next login must choose another password')
    .option('--end-tokens', 'end the API tokens of the user too');
  performing(
    command,
    io,
    ['viewPassword', 'setPassword'],
    async (perform, typed: string, flags: PasswdFlags) => {
      const { name, api_tokens: tokens } = await perform('viewPassword', {
        params: { name: typed },
      });
      const { mustChange: must_change = false, endTokens: end_tokens = false } = flags;
      const body = { password: await askPassword(io, flags), must_change, end_tokens };
      await perform('setPassword', { params: { name: typed }, body });
      const ended = end_tokens ? 'logins and API tokens' : 'logins';
      io.stdout.write(`The password of ${name} is set; all their ${ended} have ended.\n`);
      if (tokens > 0 && !end_tokens) {
        io.stdout.write(`API tokens that they keep: ${tokens}; --end-tokens ends those too.\n`);
      }
    },
  );
}

function addAccountCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('account'))
    .description("show or choose the system account and files of a user's servers")
    .argument('<user>', 'name of the user')
    .argument('[account]', 'what {username} stands for in Spawner.system_user and home_dir');
  performing(
    command,
    io,
    ['viewAccount', 'setSystemAccount'],
    async (perform, typed: string, account: string | undefined) => {
      const { name, system_account } = await perform('viewAccount', { params: { name: typed } });
      if (account === undefined) {
        const none = `not decided; ${name} if free, when a server first starts`;
        io.stdout.write(`${system_account ?? none}\n`);
        return;
      }
      const body = { system_account: account };
      await perform('setSystemAccount', { params: { name }, body });
      io.stdout.write(`The servers of ${name} use the account ${account} from now on.\n`);
    },
  );
}

function addVolumeCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('volume'))
    .description(
      "show a user's volumes that were there before, or choose one, such as that of KubeSpawner",
    )
    .argument('<user>', 'name of the user')
    .argument(
      '[source]',
      'the claim (PersistentVolumeClaim) as Kubernetes has it; none to end that',
    )
    .option(
      '--claim <volume>',
      'which of KubernetesSpawner.claims it is: "home" for "home-{username}"',
    )
    .option('--server <server>', 'of which named server it is, where each has its own', '');
  performing(
    command,
    io,
    ['viewAccount', 'setUserVolume'],
    async (
      perform,
      typed: string,
      source: string | undefined,
      { claim: volume, server }: { readonly claim?: string; readonly server: string },
    ) => {
      const { name, volumes } = await perform('viewAccount', { params: { name: typed } });
      if (volume === undefined) {
        if (source !== undefined)
          throw new HubError('bad_request', 'Which volume is it? Name it by --claim.');
        const lines = volumes.map((each) =>
          [each.volume, each.source, ...(each.server === '' ? [] : [each.server])].join('  '),
        );
        io.stdout.write(lines.map((line) => `${line}\n`).join('') || 'none\n');
        return;
      }
      const body = { volume, server, source: source ?? null };
      await perform('setUserVolume', { params: { name }, body });
      const what = source === undefined ? 'as configured' : `the claim ${source}`;
      io.stdout.write(`The volume "${volume}" of ${name} is ${what} from the next start on.\n`);
    },
  );
}

function addInviteCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('invite'))
    .description('print a new link with which a user chooses a password; earlier links end')
    .argument('<user>', 'name of the user');
  performing(command, io, ['viewAccount', 'createInvitation'], async (perform, typed: string) => {
    const { name } = await perform('viewAccount', { params: { name: typed } });
    const { url, expires_at } = await perform('createInvitation', { params: { name } });
    io.stdout.write(`${url}\n`);
    // Beside the output, which is the link alone.
    io.stderr.write(`For ${name}, once, until ${exactTime(new Date(expires_at))}.\n`);
  });
}

function addGroupCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('group'))
    .description(
      `list the groups of a user, and who put them there; ${hubCommand('group')} changes them`,
    )
    .argument('<user>', 'name of the user');
  performing(command, io, ['viewAccount'], async (perform, typed: string) => {
    const { name, groups } = await perform('viewAccount', { params: { name: typed } });
    if (groups.length === 0) io.stderr.write(`${name} is in no group.\n`);
    for (const group of groups) io.stdout.write(`${group.name}\t${group.origin}\n`);
  });
}

function addListCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('list'))
    .description('list all users')
    .option('--json', 'as JSON, for programs');
  performing(command, io, ['viewAccounts'], async (perform, flags: { readonly json?: boolean }) => {
    const all: Account[] = [];
    let after: string | undefined;
    do {
      const query = after === undefined ? {} : { after };
      const page = await perform('viewAccounts', { query });
      all.push(...page.accounts);
      after = page.next;
    } while (after !== undefined);
    io.stdout.write(flags.json === true ? `${JSON.stringify(all, undefined, 2)}\n` : asTable(all));
  });
}

function addSuspensionCommands(user: Command, io: CliIo): void {
  for (const [name, operation, description, reported] of [
    ['suspend', 'suspendUser', 'shut a user out for now, and stop their servers', 'is suspended'],
    ['unsuspend', 'unsuspendUser', 'let a suspended user in again', 'may log in again'],
  ] as const) {
    const command = withConfig(user.command(name))
      .description(description)
      .argument('<user>', 'name of the user');
    performing(command, io, ['viewAccount', operation], async (perform, typed: string) => {
      const { name: userName } = await perform('viewAccount', { params: { name: typed } });
      await perform(operation, { params: { name: userName } });
      io.stdout.write(`${userName} ${reported}.\n`);
    });
  }
}

function addDeleteCommand(user: Command, io: CliIo): void {
  const command = withConfig(user.command('delete'))
    .description('delete a user with all their tokens, logins and servers')
    .argument('<user>', 'name of the user')
    .option('-y, --yes', 'do not ask');
  performing(
    command,
    io,
    ['viewAccount', 'deleteUser'],
    async (perform, typed: string, flags: { readonly yes?: boolean }) => {
      const found = await perform('viewAccount', { params: { name: typed } });
      await confirmDeletion(io, describe(found), flags);
      await perform('deleteUser', { params: { name: found.name } });
      io.stdout.write(`Deleted ${found.name}.\n`);
    },
  );
}

interface PasswordFlags {
  readonly passwordStdin?: boolean;
  readonly mustChange?: boolean;
}

interface PasswdFlags extends PasswordFlags {
  readonly endTokens?: boolean;
}

interface AddFlags extends PasswordFlags {
  readonly admin?: boolean;
  readonly authenticator?: string;
  readonly password?: boolean;
}

function askPassword(io: CliIo, { passwordStdin }: PasswordFlags): Promise<string> {
  return askNewPassword(io, { isPiped: passwordStdin === true });
}

function describe({ name, admin }: Pick<Account, 'name' | 'admin'>): string {
  return admin ? `the administrator ${name}` : `the user ${name}`;
}

function asTable(users: readonly Account[]): string {
  if (users.length === 0)
    return `There are no users yet. Make one with: ${hubCommand('user add NAME --admin')}\n`;
  const width = Math.max(4, ...users.map(({ name }) => name.length));
  const rows = users.map(({ name, admin, suspended, last_activity }) => {
    const seen = last_activity?.slice(0, 16).replace('T', ' ') ?? 'never';
    return `${name.padEnd(width)}  ${admin ? 'admin' : 'user '}  ${seen}${suspended ? '  suspended' : ''}`;
  });
  return `${'NAME'.padEnd(width)}  ROLE   LAST SEEN\n${rows.join('\n')}\n`;
}
