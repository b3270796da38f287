import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { type Command, Option } from 'commander';
import { hubSection } from '../../platform/config/hub-schema.ts';
import { Secret } from '../../platform/config/secret.ts';
import { StartupError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';

/** Variable that holds the token of a gateway. */
export const gatewayTokenVariable = 'HUB_GATEWAY_TOKEN';

/** What a gateway is called unless told otherwise. */
export function gatewayName(pid: number): string {
  return `${hostname()}-${pid}`;
}

const { log_level, log_format } = hubSection.shape;

interface GatewayFlags {
  readonly hub: string;
  readonly tokenFile?: string;
  readonly bind?: string;
  readonly redirectBind?: string;
  readonly name?: string;
  readonly local?: boolean;
  readonly logLevel: string;
  readonly logFormat: string;
}

const examples = () => `
The token is that of a service whose role has the scope gateway. It is read from the variable
${gatewayTokenVariable} or from a file, never from the command line, where every user sees it.

Examples:
  ${hubCommand('gateway --hub http://hub.internal:8080/ --token-file /etc/hub/gateway-token')}
  ${hubCommand('gateway --hub https://hub.example.org/ --bind http://0.0.0.0:8000/')}`;

/** Adds `hub gateway`. */
export function addGatewayCommand(program: Command, io: CliIo): void {
  program
    .command('gateway')
    .description('run a gateway for a hub that runs elsewhere, until SIGTERM or Ctrl-C')
    .requiredOption('--hub <url>', 'base URL of the hub, or of its internal address (hub_bind_url)')
    .option('--token-file <file>', `file with the token, in place of ${gatewayTokenVariable}`)
    .option('--bind <url>', 'where to listen (default: bind_url of the hub)')
    .option(
      '--redirect-bind <url>',
      'where to redirect http:// to https://, such as http://0.0.0.0:80/',
    )
    .option('--name <name>', 'its name at the hub (default: host name and process id)')
    .option('--local', 'end when no hub comes back in Hub.gateway_linger; set by the hub')
    .addOption(
      new Option('--log-level <level>', 'least important messages that are logged')
        .choices(log_level.unwrap().options)
        .default('info'),
    )
    .addOption(
      new Option('--log-format <format>', 'format of log lines')
        .choices(log_format.unwrap().options)
        .default('auto'),
    )
    .addHelpText('after', examples)
    .action(async (flags: GatewayFlags) => {
      if (flags.redirectBind !== undefined && !/^https:/.test(flags.bind ?? '')) {
        throw new StartupError('--redirect-bind needs an https:// address in --bind');
      }
      await io.startGateway({
        hubUrl: readUrl('--hub', flags.hub, /^https?:$/),
        token: await readToken(flags, io),
        name: flags.name ?? gatewayName(process.pid),
        bindUrl: flags.bind && readUrl('--bind', flags.bind, /^https?:$/).href,
        redirectBindUrl:
          flags.redirectBind && readUrl('--redirect-bind', flags.redirectBind, /^http:$/).href,
        isLocal: flags.local === true,
        logLevel: flags.logLevel,
        logFormat: flags.logFormat,
      });
    });
}

function readUrl(option: string, text: string, protocol: RegExp): URL {
  const url = URL.parse(text);
  if (url === null || !protocol.test(url.protocol) || url.search !== '' || url.username !== '') {
    throw new StartupError(`${option} ${text}: is not a URL such as http://127.0.0.1:8080/`);
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

async function readToken({ tokenFile }: GatewayFlags, io: CliIo): Promise<Secret> {
  if (tokenFile === undefined) {
    const token = io.env[gatewayTokenVariable] ?? '';
    if (token !== '') return new Secret(token);
    throw new StartupError(`a gateway needs a token: set ${gatewayTokenVariable} or --token-file`);
  }
  try {
    const token = (await readFile(tokenFile, 'utf8')).trim();
    if (token !== '') return new Secret(token);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartupError(`--token-file ${tokenFile}: cannot be read (${code})`, { cause: error });
  }
  throw new StartupError(`--token-file ${tokenFile}: is empty`);
}
