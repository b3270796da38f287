import { resolve } from 'node:path';
import type { Argument, Command, Option } from 'commander';
import { pino } from 'pino';
import { createGroupPages } from '../../identity/users/group-pages-store.ts';
import { completeUserName } from '../../identity/users/user-rows-store.ts';
import type { Config } from '../../platform/config/config.ts';
import { loadConfig } from '../../platform/config/load.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { probeDatabase } from '../../platform/store/probe-database.ts';
import { createServerStore } from '../../workloads/servers/server-store.ts';
import type { CliIo } from './cli-io.ts';
import { filesMark } from './completion-scripts.ts';
import { fullName, listManagedServices } from './find-program.ts';

interface Completion {
  readonly value: string;
  readonly description: string;
}

type ListNames = (
  database: HubDatabase,
  config: Config,
  beginning: string,
) => Promise<readonly Completion[]>;

const maxNames = 200;

/** What may stand in an argument, by its name. */
const namesOf: Readonly<Record<string, ListNames>> = {
  group: listGroups,
  program: async (database, config) => [
    ...(await listServices(database, config)),
    ...(await createServerStore(database).listActive()).map((server) => ({
      value: fullName(server),
      description: 'server',
    })),
  ],
  service: listServices,
  user: listUsers,
  users: listUsers,
};

async function listServices(database: HubDatabase, config: Config) {
  const names = await listManagedServices(database, config);
  return names.map((value) => ({ value, description: 'service' }));
}

async function listGroups(database: HubDatabase, _config: Config, beginning: string) {
  const asked = { nameFilter: beginning, limit: maxNames, edge: undefined };
  const { items } = await createGroupPages(database).listGroups(asked);
  return items.map(({ name }) => ({ value: name, description: 'group' }));
}

async function listUsers(database: HubDatabase, _config: Config, beginning: string) {
  const names = await completeUserName(database, beginning, maxNames);
  return names.map((value) => ({ value, description: 'user' }));
}

/**
 * What the last word can become, as lines of a value, a tab and what it is; or the one line that asks for names of
 * files. Empty where nothing is known, and where names cannot be read.
 */
export async function listCompletions(
  program: Command,
  words: readonly string[],
  io: Pick<CliIo, 'env' | 'directory'>,
): Promise<readonly string[]> {
  const current = words.at(-1) ?? '';
  const place = walk(program, words.slice(0, -1));
  const found = await completionsAt(place, current, io).catch(() => []);
  if (found === 'files') return [filesMark];
  const lines = found
    .filter(({ value }) => value.startsWith(current))
    .map(({ value, description }) => `${value}\t${description}`)
    // Each is a line: what holds another one would be taken for several.
    .filter((line) => !/[\n\r]/.test(line));
  return [...new Set(lines)].slice(0, maxNames);
}

/** Where the words before lead. */
interface Place {
  readonly command: Command;
  /** How many arguments of the command stand before. */
  readonly position: number;
  /** Whose value comes next. */
  readonly option: Option | undefined;
  /** Which comes next, unless an option does. */
  readonly argument: Argument | undefined;
  readonly configFile: string | undefined;
}

function walk(program: Command, words: readonly string[]): Place {
  let command = program;
  let position = 0;
  let option: Option | undefined;
  let configFile: string | undefined;
  for (const word of words) {
    if (option !== undefined) {
      if (option.long === '--config') configFile = word;
      option = undefined;
    } else if (word.startsWith('-')) {
      const [, name, value] = /^(--[^=]*|-.)=?(.+)?$/s.exec(word) ?? [];
      const found = command.options.find(({ short, long }) => name === long || name === short);
      if (found?.long === '--config') configFile = value;
      option = takesValue(found) && value === undefined ? found : undefined;
    } else {
      const inside = command.commands.find((each) => each.name() === word);
      if (inside === undefined) position += 1;
      else command = inside;
    }
  }
  const { registeredArguments: all } = command;
  const last = all.at(-1);
  const argument = all[position] ?? (last?.variadic === true ? last : undefined);
  return { command, position, option, argument, configFile };
}

async function completionsAt(
  { command, position, option, argument, configFile }: Place,
  current: string,
  { env, directory }: Pick<CliIo, 'env' | 'directory'>,
): Promise<readonly Completion[] | 'files'> {
  if (option !== undefined) return valuesOf(option);
  const [, prefix, long] = /^((--[^=]+)=)/.exec(current) ?? [];
  if (prefix !== undefined) {
    const named = command.options.find((each) => each.long === long && takesValue(each));
    const values = named === undefined ? [] : valuesOf(named);
    if (values === 'files') return values;
    return values.map(({ value, description }) => ({ value: prefix + value, description }));
  }
  const help = command.createHelp();
  if (current.startsWith('-')) {
    return help
      .visibleOptions(command)
      .flatMap(({ long, description }) =>
        long === undefined ? [] : [{ value: long, description }],
      );
  }
  const commands = help
    .visibleCommands(command)
    .map((each) => ({ value: each.name(), description: each.description() }));
  if (commands.length > 0) return position === 0 ? commands : [];
  if (argument === undefined) return [];
  const listNames = namesOf[argument.name()];
  if (listNames === undefined) {
    return /file|folder/.test(argument.name()) ? 'files' : chosen(argument);
  }
  const config = await loadConfig({
    file: configFile,
    env,
    ...(directory !== undefined && { directory }),
    onWarning: () => undefined,
  });
  // A key that was pressed creates no database, and brings none to another version.
  const probe = await probeDatabase(config.Hub.database_url, resolve(config.directory));
  if (probe.schemaVersion !== probe.newestSchemaVersion) return [];
  await using database = await openDatabase(config.Hub.database_url, {
    directory: resolve(config.directory),
    log: pino({ level: 'silent' }),
  });
  return await listNames(database, config, current);
}

function takesValue(option: Option | undefined): boolean {
  return option?.required === true || option?.optional === true;
}

function valuesOf(option: Option): readonly Completion[] | 'files' {
  return option.flags.includes('file') ? 'files' : chosen(option);
}

function chosen({ argChoices = [] }: Pick<Option, 'argChoices'>): readonly Completion[] {
  return argChoices.map((value) => ({ value, description: '' }));
}
