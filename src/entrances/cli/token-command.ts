import { type Command, InvalidArgumentError } from 'commander';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { exactTime } from '../../platform/texts/text.ts';
import type { CliIo } from './cli-io.ts';
import { parseDuration } from './parse-duration.ts';
import { hubUrlOf, performing } from './performing.ts';
import { withConfig } from './with-config.ts';

interface TokenFlags {
  readonly note: string;
  readonly expiresIn?: number;
  readonly scopes?: string[];
  readonly device?: boolean;
}

const examples = () => `
Examples:
  ${hubCommand('token ada --note "nightly report" --expires-in 30d')}
  ${hubCommand('token ada --scopes "read:users!user=ada read:tokens!user=ada"')}`;

/** Adds `hub token USER`. */
export function addTokenCommand(program: Command, io: CliIo): void {
  const command = withConfig(program.command('token'))
    .description('make an API token for a user and print it; it is shown this once')
    .argument('[user]', 'name of the user')
    .option('--note <text>', 'what the token is for', 'made on the command line')
    .option(
      '--expires-in <time>',
      'lifetime such as 3600, 12h or 30d (default: the longest allowed)',
      parseDuration,
    )
    .option(
      '--scopes <list>',
      'scopes, separated by spaces or commas (default: inherit)',
      parseList,
    )
    .option(
      '--device',
      'print the token of the login to the hub of --url, logging in where need be',
    )
    .addHelpText('after', examples);
  performing(
    command,
    io,
    ['viewAccount', 'createToken'],
    async (perform, typed: string | undefined, flags: TokenFlags) => {
      const { note, expiresIn: expires_in, scopes } = flags;
      const hubUrl = hubUrlOf(command);
      if (flags.device === true && hubUrl !== undefined) {
        const { deviceToken } = await import('./device-login.ts');
        io.stdout.write(`${await deviceToken(hubUrl, io)}\n`);
        return;
      }
      const user = typed ?? command.error("error: missing required argument 'user'");
      const { name } = await perform('viewAccount', { params: { name: user } });
      const body = { note, expires_in, scopes };
      const made = await perform('createToken', { params: { name }, body });
      io.stdout.write(`${made.token}\n`);
      const rights = scopes === undefined ? `all that ${name} may do` : made.scopes.join(', ');
      const end = made.expires_at === null ? 'never' : exactTime(new Date(made.expires_at));
      // Beside the output, which is the token alone.
      io.stderr.write(`It is good for ${rights}, and ends: ${end}.\n`);
    },
  );
}

function parseList(text: string): string[] {
  const list = text.split(/[\s,]+/).filter((scope) => scope !== '');
  if (list.length > 0) return list;
  throw new InvalidArgumentError('It names no scope.');
}
