import { writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { HubError } from '../../platform/errors.ts';
import { hubCommand, programFolder } from '../../platform/files/program-folder.ts';
import { explainLaunchProblem } from '../../spawning/processes/launch-check.ts';
import { loadCheckedConfig } from './checked-config.ts';
import type { CliIo } from './cli-io.ts';
import {
  clientSecretVariable,
  type InitAnswers,
  initConfigText,
  logins,
  serverKinds,
  tlsKinds,
} from './init-config.ts';
import { unitText } from './init-unit.ts';

interface InitFlags {
  readonly config: string;
  readonly title?: string;
  readonly url?: string;
  readonly tls?: string;
  readonly login?: string;
  readonly set: readonly string[];
  readonly admin: readonly string[];
  readonly server?: string;
  readonly systemd?: boolean;
  readonly yes?: boolean;
}

/** Adds `hub init`. */
export function addInitCommand(program: Command, io: CliIo): void {
  const collect = (value: string, before: readonly string[]) => [...before, value];
  program
    .command('init')
    .description('write a commented configuration; asks for what the options leave open')
    .option('-c, --config <file>', 'file to write', 'hub.config.json')
    .option('--title <text>', 'name of the hub on its pages')
    .option('--url <url>', 'where people find the hub')
    .option('--tls <who>', `who ends TLS at an https address: ${Object.keys(tlsKinds).join(', ')}`)
    .option('--login <kind>', `who logs people in: ${Object.keys(logins).join(', ')}`)
    .option(
      '--set <name=value>',
      'setting of the login or of TLS, such as issuer=https://… or certificate=hub.pem',
      collect,
      [],
    )
    .option('--admin <name>', 'administrator, by the name at the login', collect, [])
    .option(
      '--server <what>',
      `what each user gets: ${Object.keys(serverKinds).join(', ')}, none, or a command`,
    )
    .option('--systemd', 'write hub.service for systemd too, beside the configuration')
    .option('-y, --yes', 'ask nothing: take the default of what is left open')
    .action(async (_: InitFlags, command: Command) => {
      // The program takes every --url for its own.
      const flags = command.optsWithGlobals<InitFlags>();
      const directory = io.directory ?? process.cwd();
      const file = resolve(directory, flags.config);
      const answers = await ask(flags, io, directory);
      const schema = relative(resolve(file, '..'), join(programFolder, 'hub.schema.json'));
      write(file, initConfigText(answers, schema.startsWith('.') ? schema : `./${schema}`));
      // A secret that is not there yet is no fault of the file.
      const env = { [clientSecretVariable]: 'later', ...io.env };
      await loadCheckedConfig({ file, env, directory });
      const unit = flags.systemd === true ? join(dirname(file), 'hub.service') : undefined;
      const lowPorts = answers.tls !== 'proxy' && answers.url.protocol === 'https:';
      if (unit !== undefined) write(unit, unitText(file, lowPorts));
      io.stdout.write(`${describe(answers, relative(directory, file), unit)}\n`);
    });
}

async function ask(flags: InitFlags, io: CliIo, directory: string): Promise<InitAnswers> {
  using questions =
    flags.yes !== true && io.stdin.isTTY === true ? await createQuestions(io) : undefined;
  const answer = async (given: string | undefined, question: string, initial: string) => {
    if (given !== undefined) return given;
    return (await questions?.ask(`${question} [${initial}] `)) || initial;
  };
  const title = await answer(flags.title, 'Name of the hub', 'Hub');
  const url = readUrl(
    await answer(flags.url, 'Where do people find it?', 'http://127.0.0.1:8000/'),
  );
  const given = Object.fromEntries(flags.set.map((each) => each.split(/=(.*)/s).slice(0, 2)));
  const settingsOf = async (what: string, asks: readonly string[]) => {
    const settings: Record<string, string> = {};
    for (const name of asks) {
      const value = given[name] ?? (await questions?.ask(`${name}: `)) ?? '';
      if (value === '') refuse(`${what} needs ${name}`, `--set ${name}=…`);
      settings[name] = value;
    }
    return settings;
  };
  const ends = Object.keys(tlsKinds).join(', ');
  const tls =
    url.protocol === 'https:'
      ? await answer(flags.tls, `Who has the certificate? (${ends})`, 'proxy')
      : 'proxy';
  const tlsAsks = tlsKinds[tls] ?? refuse(`"${tls}" does not end TLS here`, `--tls ${ends}`);
  const tlsSettings = await settingsOf(`TLS by ${tls}`, tlsAsks);
  const kinds = Object.keys(logins).join(', ');
  const login = await answer(flags.login, `Who logs people in? (${kinds})`, 'password');
  const { asks } = logins[login] ?? refuse(`"${login}" is no login that is set up here`, kinds);
  const loginSettings = await settingsOf(`The login ${login}`, asks);
  const admins = [...flags.admin];
  if (login !== 'password' && admins.length === 0) {
    const name = (await questions?.ask('Your name there, to be the administrator: ')) ?? '';
    if (name !== '') admins.push(name);
  }
  const isThere = async (program: string) => {
    const launch = { command: [program], workingDirectory: directory, path: io.env['PATH'] };
    return (await explainLaunchProblem(launch)) === undefined;
  };
  const installed = await Promise.all(
    Object.entries(serverKinds).map(async ([name, { program }]) =>
      (await isThere(program)) ? [name] : [],
    ),
  );
  const known = Object.keys(serverKinds);
  const servers = `${known.join(', ')}, none, or a command`;
  const server = await answer(
    flags.server,
    `What does each user get? (${servers})`,
    installed.flat()[0] ?? 'none',
  );
  const isCommand = ![...known, 'none'].includes(server);
  // Such as jupyter and code: programs, of which none is a server.
  const isBeginning = known.some((name) => name.startsWith(server));
  if (isCommand && !/\s/.test(server) && (isBeginning || !(await isThere(server))))
    refuse(`"${server}" is no server that is set up here, nor a command that starts one`, servers);
  return { title, url, tls, tlsSettings, login, loginSettings, admins, server };
}

interface Questions extends Disposable {
  /** Writes a question, and gives the line that answers it. Throws `bad_request` where there is none. */
  ask(question: string): Promise<string>;
}

async function createQuestions({ stdin, stderr }: CliIo): Promise<Questions> {
  // A megabyte that a running hub has no use for.
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: stdin, terminal: false });
  const answers = lines[Symbol.asyncIterator]();
  return {
    async ask(question) {
      stderr.write(question);
      const { value, done } = await answers.next();
      if (done === true) throw new HubError('bad_request', 'Cancelled: nothing was written.');
      return value.trim();
    },
    [Symbol.dispose]: () => lines.close(),
  };
}

function readUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return refuse(`"${text}" is no address`, 'https://hub.example.org/');
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

function refuse(message: string, example: string): never {
  throw new HubError('bad_request', `${message}.`, { hint: `For example: ${example}` });
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new HubError('conflict', `${file} exists already, and is left as it is.`, {
      hint: 'Move it away, or name another with --config.',
    });
  }
}

function describe(
  { login, server, url }: InitAnswers,
  file: string,
  unit: string | undefined,
): string {
  const hasProvider = logins[login]?.section !== undefined;
  const kind = serverKinds[server];
  return [
    `${file} is written.`,
    ...(kind === undefined ? [] : [`Users’ servers need ${kind.program}.`]),
    ...(hasProvider
      ? [
          `Redirect URI for the provider: ${new URL('hub/oauth_callback', url).href}`,
          `Set ${clientSecretVariable} to the secret of the provider.`,
        ]
      : []),
    unit === undefined
      ? `Next: ${hubCommand('start')}${file === 'hub.config.json' ? '' : ` --config ${file}`}`
      : `Next: sudo systemctl enable --now ${unit}`,
  ].join('\n');
}
