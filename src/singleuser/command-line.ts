import { Command, InvalidArgumentError } from 'commander';
import {
  forwardingOf,
  type IdentityHeaderNames,
  identityFields,
  isIdentityHeaderName,
} from '../platform/protocol/identity-headers.ts';
import type { SingleuserOptions } from './singleuser.ts';

const examples = `
In the arguments of COMMAND, {port}, {socket} and {prefix} are filled in; {socket} implies --socket.
The variables HUB_… come from the hub that starts this program.

Examples:
  hub-singleuser -- code-server --auth none --bind-addr 127.0.0.1:{port}
  hub-singleuser --strip-prefix -- python3 -m http.server --bind 127.0.0.1 {port}
  hub-singleuser -- my-app --listen unix:{socket} --base-url {prefix}`;

/** Reads the command line (without node and script) and hands over what it says. */
export function createCommandLine(run: (options: SingleuserOptions) => Promise<void>): Command {
  return new Command('hub-singleuser')
    .description('Puts the login of the hub in front of any web app.')
    .usage('[options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'starts the app')
    .option('--url <url>', 'where to listen (default: $HUB_SERVICE_URL)')
    .option('--port <number>', 'port of the app (default: a free one)', parsePort)
    .option('--socket', 'the app listens on a Unix socket instead of a port')
    .option('--listens-elsewhere', 'a program that the app did not start listens on its port')
    .option('--strip-prefix', 'the app gets paths without the prefix of the server')
    .option('--upstream-host', 'the app gets its own address as Host, not the public name')
    .option(
      '--identity-header <field=name>',
      'a further header for who asks, such as user=X-Remote-User; repeatable',
      parseIdentityHeader,
      {},
    )
    .option('--pass-token', 'the app gets HUB_API_TOKEN')
    .option('--ready-path <path>', 'path of the app that is asked until it answers')
    .option('--cache-max-age <seconds>', 'how long the hub is not asked again', parseSeconds, 300)
    .option('--kill-after <seconds>', 'time the app has to end', parseSeconds, 5)
    .addHelpText('after', examples)
    .passThroughOptions()
    .action(async (command: string[], flags: Flags) => {
      await run({
        command,
        url: flags.url,
        port: flags.port,
        usesSocket:
          flags.socket === true || command.some((argument) => argument.includes('{socket}')),
        listensElsewhere: flags.listensElsewhere === true,
        stripsPrefix: flags.stripPrefix === true,
        forwarding: forwardingOf({
          host: flags.upstreamHost === true ? 'upstream' : 'public',
          identity_headers: flags.identityHeader,
        }),
        passesToken: flags.passToken === true,
        readyPath: flags.readyPath ?? '',
        cacheMaxAgeSeconds: flags.cacheMaxAge,
        killAfterSeconds: flags.killAfter,
      });
    });
}

interface Flags {
  readonly url?: string;
  readonly port?: number;
  readonly socket?: boolean;
  readonly listensElsewhere?: boolean;
  readonly stripPrefix?: boolean;
  readonly upstreamHost?: boolean;
  readonly identityHeader: IdentityHeaderNames;
  readonly passToken?: boolean;
  readonly readyPath?: string;
  readonly cacheMaxAge: number;
  readonly killAfter: number;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('It is not a port number.');
}

function parseIdentityHeader(text: string, former: IdentityHeaderNames): IdentityHeaderNames {
  const [, given = '', name = ''] = /^([a-z_]+)=(.*)$/s.exec(text) ?? [];
  const field = identityFields.find((each) => each === given);
  if (field === undefined) {
    throw new InvalidArgumentError(`It begins with none of ${identityFields.join('=, ')}=.`);
  }
  if (!isIdentityHeaderName(name)) {
    throw new InvalidArgumentError('It names no header that could say who asks.');
  }
  return { ...former, [field]: name };
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== '' && seconds >= 0) return seconds;
  throw new InvalidArgumentError('It is not a number of seconds.');
}
