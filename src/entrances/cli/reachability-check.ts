import { existsSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import type { Config } from '../../platform/config/config.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import {
  type ClosedPlace,
  findClosedPlace,
  type Visitor,
} from '../../spawning/processes/closed-path.ts';
import { withSingleuserProgram } from '../../spawning/processes/singleuser-program.ts';
import { findSystemUser, maySwitchAccounts } from '../../spawning/processes/system-user.ts';

/** A command that is to run under another account. */
interface ForeignCommand {
  /** The setting that names the account. */
  readonly path: string;
  readonly userName: string;
  readonly command: readonly string[];
  readonly workingDirectory: string;
}

/**
 * Warns of programs and scripts that stand in folders closed to the account that is to run them: a
 * clone in root's home, most of all. Without that the account's first start fails with no more than
 * the "permission denied" of an interpreter.
 */
export async function checkReachability(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly ConfigProblem[]> {
  // Otherwise the hub runs nothing under another account; other checks say so.
  if (!maySwitchAccounts()) return [];
  const problems = await Promise.all(
    foreignCommands(config).map(async (foreign) => {
      const message = await explainClosed(foreign, env['PATH']);
      return message === undefined ? [] : [{ path: foreign.path, message }];
    }),
  );
  return problems.flat();
}

function foreignCommands({ Hub, Spawner, directory }: Config): ForeignCommand[] {
  const services = Hub.services.flatMap(({ user, command = [], cwd = '.' }, index) =>
    user === undefined
      ? []
      : [
          {
            path: `Hub.services[${index}].user`,
            userName: user,
            command,
            workingDirectory: resolve(directory, cwd),
          },
        ],
  );
  if (Spawner.system_user === undefined) return services;
  const commands = [Spawner.cmd, ...Spawner.profiles.map(({ cmd }) => cmd)];
  const servers = commands.map((command = []) => ({
    path: 'Spawner.system_user',
    userName: Spawner.system_user ?? '',
    command: command.map((word) => word.replaceAll('{directory}', resolve(directory))),
    workingDirectory: '/',
  }));
  return [...services, ...servers];
}

async function explainClosed(
  { userName, command, workingDirectory }: ForeignCommand,
  path: string | undefined,
): Promise<string | undefined> {
  const isTemplate = userName.includes('{username}');
  const user: Visitor | undefined = isTemplate ? 'others' : await findSystemUser(userName);
  if (user === undefined) return undefined;
  const [program = '', ...words] = withSingleuserProgram(command);
  const inFolders = program.includes('/') ? [workingDirectory] : (path ?? '').split(delimiter);
  const programs = inFolders.map((folder) => resolve(folder, program)).filter(existsSync);
  const scripts = words.filter((word) => word.includes('/') && !word.includes('{'));
  const closed =
    (await firstClosed(programs, user, 'every')) ??
    (await firstClosed(
      scripts.map((word) => resolve(workingDirectory, word)),
      user,
      'some',
    ));
  if (closed === undefined) return undefined;
  const { file, place } = closed;
  const who = isTemplate ? 'other accounts' : `the account "${userName}"`;
  const mode = place.mode.toString(8).padStart(4, '0');
  const remedy =
    place.path === file
      ? `chmod o+rx ${file}`
      : `move the program to a folder open to it, such as /opt, or: chmod o+x ${place.path}`;
  return `${who} cannot reach ${file}: ${place.path} is closed (mode ${mode}); ${remedy}`;
}

/** The first closed one of files of which `every` one, or `some`, must be closed to be in the way. */
async function firstClosed(
  files: readonly string[],
  visitor: Visitor,
  needed: 'every' | 'some',
): Promise<{ readonly file: string; readonly place: ClosedPlace } | undefined> {
  const found = await Promise.all(
    files.map(async (file) => ({ file, place: await findClosedPlace(file, visitor) })),
  );
  const closed = found.flatMap(({ file, place }) => (place === undefined ? [] : [{ file, place }]));
  return needed === 'some' || closed.length === files.length ? closed[0] : undefined;
}
