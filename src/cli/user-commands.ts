import type { Command } from 'commander';
import { createAccountBinding } from '../authentication/account-binding.ts';
import { createUserNameRules, type UserNameRules } from '../authentication/user-name-rules.ts';
import { HubError } from '../errors.ts';
import type { Phrase } from '../texts/text.ts';
import type { User } from '../users/user-store.ts';
import { askNewPassword, confirm } from './ask-password.ts';
import type { CheckedConfig } from './checked-config.ts';
import type { CliIo } from './cli-io.ts';
import type { CliStores } from './cli-stores.ts';
import { loadFor, withConfig } from './with-config.ts';

const listPageSize = 500;

/** Adds `hub user add|passwd|account|list|delete`. */
export function addUserCommands(program: Command, io: CliIo): void {
  const user = program.command('user').description('manage user accounts');
  addAddCommand(user, io);
  addPasswdCommand(user, io);
  addAccountCommand(user, io);
  addListCommand(user, io);
  addDeleteCommand(user, io);
}

function addAddCommand(user: Command, io: CliIo): void {
  withConfig(user.command('add'))
    .description('create an account and set its password')
    .argument('<name>', 'name of the new user')
    .option('--admin', 'make the user an administrator')
    .option('--authenticator <name>', 'by which the user will come, where there are several')
    .option('--no-password', 'set none: the user logs in another way, or by an invitation')
    .option('--password-stdin', 'read the password from standard input')
    .option('--must-change', 'the first login must choose another password')
    .action(async (name: string, flags: AddFlags, command: Command) => {
      await withStores(io, command, async ({ stores, checked }) => {
        const resolved = namesOf(checked).resolveNew(name);
        if ((await stores.users.findByName(resolved)) !== undefined) {
          throw new HubError('conflict', `The user ${resolved} exists already.`, {
            hint: `To set a new password: hub user passwd ${resolved}`,
          });
        }
        const binding = createAccountBinding(checked.config);
        const madeFor = binding.choose(flags.authenticator);
        await using passwords = await stores.openPasswords();
        const needsPassword = flags.password !== false && passwords.isUsed;
        const password = needsPassword
          ? await newPassword(io, passwords, resolved, flags.passwordStdin === true)
          : undefined;
        const created = await stores.users.create({
          name: resolved,
          isAdmin: flags.admin === true,
          isInvited: true,
          madeFor,
        });
        if (password !== undefined) {
          await passwords.set(created, password, { mustChange: flags.mustChange === true });
        }
        io.stdout.write(`Created ${describe(created)}.\n`);
      });
    });
}

function addPasswdCommand(user: Command, io: CliIo): void {
  withConfig(user.command('passwd'))
    .description("set a user's password and end all their logins")
    .argument('<name>', 'name of the user')
    .option('--password-stdin', 'read the password from standard input')
    .option('--must-change', 'the next login must choose another password')
    .option('--end-tokens', 'end the API tokens of the user too')
    .action(async (name: string, flags: PasswdFlags, command: Command) => {
      await withStores(io, command, async ({ stores, checked }) => {
        const found = await getUser(stores, namesOf(checked).resolve(name));
        await using passwords = await stores.openPasswords();
        if (!passwords.isUsed) {
          throw new HubError(
            'bad_request',
            'No configured authenticator uses passwords of the hub.',
            {
              hint: 'Add "password" to Hub.authenticator_class.',
            },
          );
        }
        const isPiped = flags.passwordStdin === true;
        const password = await newPassword(io, passwords, found.name, isPiped);
        const tokens = await passwords.apiTokenCount(found.id);
        const endsApiTokens = flags.endTokens === true;
        const mustChange = flags.mustChange === true;
        await passwords.set(found, password, { mustChange, endsApiTokens });
        const ended = endsApiTokens ? 'logins and API tokens' : 'logins';
        io.stdout.write(`The password of ${found.name} is set; all their ${ended} have ended.\n`);
        if (tokens > 0 && !endsApiTokens) {
          io.stdout.write(`API tokens that they keep: ${tokens}; --end-tokens ends those too.\n`);
        }
      });
    });
}

function addAccountCommand(user: Command, io: CliIo): void {
  withConfig(user.command('account'))
    .description("show or choose the system account and files of a user's servers")
    .argument('<name>', 'name of the user')
    .argument('[account]', 'what {username} stands for in Spawner.system_user and home_dir')
    .action(async (name: string, account: string | undefined, _flags, command: Command) => {
      await withStores(io, command, async ({ stores, checked }) => {
        const found = await getUser(stores, namesOf(checked).resolve(name));
        if (account === undefined) {
          const decided =
            found.systemAccount ?? `not decided; ${found.name} if free, when a server first starts`;
          io.stdout.write(`${decided}\n`);
          return;
        }
        await requireStopped(stores, found);
        await stores.systemAccounts.give(found, account);
        io.stdout.write(`The servers of ${found.name} use the account ${account} from now on.\n`);
      });
    });
}

function addListCommand(user: Command, io: CliIo): void {
  withConfig(user.command('list'))
    .description('list all users')
    .option('--json', 'as JSON, for programs')
    .action(async (flags: { readonly json?: boolean }, command: Command) => {
      await withStores(io, command, async ({ stores }) => {
        const all: User[] = [];
        for (let isLast = false; !isLast; ) {
          const key = all.at(-1)?.name;
          const edge = key === undefined ? undefined : ({ side: 'after', key } as const);
          const page = await stores.users.list({ limit: listPageSize, edge });
          all.push(...page.items);
          isLast = page.isLast;
        }
        io.stdout.write(flags.json === true ? asJson(all) : asTable(all));
      });
    });
}

function addDeleteCommand(user: Command, io: CliIo): void {
  withConfig(user.command('delete'))
    .description('delete a user with all their tokens, logins and stopped servers')
    .argument('<name>', 'name of the user')
    .option('-y, --yes', 'do not ask')
    .action(async (name: string, flags: { readonly yes?: boolean }, command: Command) => {
      await withStores(io, command, async ({ stores, checked }) => {
        const found = await getUser(stores, namesOf(checked).resolve(name));
        await requireStopped(stores, found);
        if (flags.yes !== true && !(await confirm(io, `Delete ${describe(found)}?`))) {
          throw new HubError('bad_request', 'Nothing was deleted.', {
            hint: 'Use --yes to delete without being asked.',
          });
        }
        await stores.users.delete(found.id);
        io.stdout.write(`Deleted ${found.name}.\n`);
      });
    });
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

async function withStores(
  io: CliIo,
  command: Command,
  work: (deps: { stores: CliStores; checked: CheckedConfig }) => Promise<void>,
): Promise<void> {
  const checked = await loadFor(command, io);
  const { openCliStores } = await import('./cli-stores.ts');
  await using stores = await openCliStores(checked);
  await work({ stores, checked });
}

async function newPassword(
  io: CliIo,
  passwords: { problemWith(password: string, userName: string): Phrase | undefined },
  userName: string,
  isPiped: boolean,
): Promise<string> {
  const password = await askNewPassword(io, { isPiped });
  const problem = passwords.problemWith(password, userName);
  if (problem !== undefined) throw new HubError('bad_request', problem);
  return password;
}

function namesOf({ config }: CheckedConfig): UserNameRules {
  return createUserNameRules(config.Authenticator);
}

async function getUser({ users }: CliStores, name: string): Promise<User> {
  const found = await users.findByName(name);
  if (found !== undefined) return found;
  throw new HubError('not_found', `There is no user ${name}.`, { hint: 'See: hub user list' });
}

async function requireStopped({ users }: CliStores, { name }: User): Promise<void> {
  const { total } = await users.list({
    limit: 1,
    onlyNames: [name],
    serverState: 'active',
  });
  if (total === 0) return;
  throw new HubError('conflict', `A server of ${name} is running.`, {
    hint: 'Stop it on the admin page first; otherwise no one could stop it any more.',
  });
}

function describe({ name, isAdmin }: User): string {
  return isAdmin ? `the administrator ${name}` : `the user ${name}`;
}

function asJson(users: readonly User[]): string {
  const list = users.map(
    ({ name, isAdmin, isInvited, createdAt, lastActivityAt, systemAccount }) => ({
      name,
      admin: isAdmin,
      invited: isInvited,
      created: createdAt,
      last_activity: lastActivityAt ?? null,
      system_account: systemAccount ?? null,
    }),
  );
  return `${JSON.stringify(list, undefined, 2)}\n`;
}

function asTable(users: readonly User[]): string {
  if (users.length === 0)
    return 'There are no users yet. Make one with: hub user add NAME --admin\n';
  const width = Math.max(4, ...users.map(({ name }) => name.length));
  const rows = users.map(({ name, isAdmin, lastActivityAt }) => {
    const seen = lastActivityAt?.toISOString().slice(0, 16).replace('T', ' ') ?? 'never';
    return `${name.padEnd(width)}  ${isAdmin ? 'admin' : 'user '}  ${seen}`;
  });
  return `${'NAME'.padEnd(width)}  ROLE   LAST SEEN\n${rows.join('\n')}\n`;
}
