import { type Command, InvalidArgumentError } from 'commander';
import { createUserNameRules } from '../authentication/user-name-rules.ts';
import { HubError } from '../errors.ts';
import { createScopeCatalogue } from '../rbac/scope-definitions.ts';
import { scopeProblem } from '../rbac/validate-roles.ts';
import type { CliIo } from './cli-io.ts';
import { parseDuration } from './parse-duration.ts';
import { loadFor, withConfig } from './with-config.ts';

interface TokenFlags {
  readonly note: string;
  readonly expiresIn?: number;
  readonly scopes?: readonly string[];
}

const examples = `
Examples:
  hub token ada --note "nightly report" --expires-in 30d
  hub token ada --scopes "read:users!user=ada list:services"`;

/** Adds `hub token USER`. */
export function addTokenCommand(program: Command, io: CliIo): void {
  withConfig(program.command('token'))
    .description('make an API token for a user and print it; it is shown this once')
    .argument('<user>', 'name of the user')
    .option('--note <text>', 'what the token is for', 'made on the command line')
    .option(
      '--expires-in <time>',
      'lifetime such as 3600, 12h or 30d (default: none)',
      parseDuration,
    )
    .option(
      '--scopes <list>',
      'scopes, separated by spaces or commas (default: inherit)',
      parseList,
    )
    .addHelpText('after', examples)
    .action(async (userName: string, flags: TokenFlags, command: Command) => {
      const checked = await loadFor(command, io);
      const { Hub, Authenticator } = checked.config;
      const scopes = flags.scopes ?? ['inherit'];
      const catalogue = createScopeCatalogue(Hub.custom_scopes);
      const problems = scopes.flatMap((scope) => scopeProblem(scope, catalogue) ?? []);
      if (problems.length > 0) throw new HubError('bad_request', problems.join('\n'));
      requireAllowedLifetime(flags.expiresIn, Hub.token_expires_in_max_seconds);

      const { openCliStores } = await import('./cli-stores.ts');
      await using stores = await openCliStores(checked);
      const name = createUserNameRules(Authenticator).resolve(userName);
      const user = await stores.users.findByName(name);
      if (user === undefined) {
        throw new HubError('not_found', `There is no user ${name}.`, {
          hint: 'See: hub user list',
        });
      }
      const { token } = await stores.accessTokens.create({
        owner: { kind: 'user', userId: user.id },
        scopes,
        note: flags.note,
        ...(flags.expiresIn !== undefined && {
          expiresAt: new Date(Date.now() + flags.expiresIn * 1000),
        }),
      });
      io.stdout.write(`${token}\n`);
    });
}

function requireAllowedLifetime(wanted: number | undefined, longest: number): void {
  if (longest === 0 || (wanted !== undefined && wanted <= longest)) return;
  throw new HubError('bad_request', `A token may live ${longest} seconds at most.`, {
    hint: 'Give --expires-in, or change Hub.token_expires_in_max_seconds.',
  });
}

function parseList(text: string): readonly string[] {
  const list = text.split(/[\s,]+/).filter((scope) => scope !== '');
  if (list.length > 0) return list;
  throw new InvalidArgumentError('It names no scope.');
}
