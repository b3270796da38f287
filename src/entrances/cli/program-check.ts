import { resolve } from 'node:path';
import type { Config } from '../../platform/config/config.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { explainLaunchProblem } from '../../spawning/processes/launch-check.ts';
import { withSingleuserProgram } from '../../spawning/processes/singleuser-program.ts';

/** A command of the configuration. */
interface ConfiguredCommand {
  /** Its setting. */
  readonly path: string;
  readonly command: readonly string[];
  readonly workingDirectory: string;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Warns of commands of services and users' servers whose program is not there. What another spawner than
 * that of local processes runs may be on another machine.
 */
export async function checkPrograms(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly ConfigProblem[]> {
  const problems = await Promise.all(
    commandsOf(config).map(async ({ path, command, workingDirectory, environment }) => {
      const [program = ''] = command;
      // Its place depends on the user.
      if (program.includes('{')) return [];
      const message = await explainLaunchProblem({
        command,
        workingDirectory,
        path: environment['PATH'] ?? env['PATH'],
      });
      return message === undefined ? [] : [{ path, message: String(message) }];
    }),
  );
  return problems.flat();
}

function commandsOf({ Hub, Spawner, spawners, directory }: Config): ConfiguredCommand[] {
  const services = Hub.services.map(({ command, cwd = '.', environment = {} }, index) => ({
    path: `Hub.services[${index}].command`,
    command,
    workingDirectory: resolve(directory, cwd),
    environment,
  }));
  const profiles = Spawner.profiles.map(({ cmd, environment }, index) => ({
    path: `Spawner.profiles[${index}].cmd`,
    command: cmd,
    environment: { ...Spawner.environment, ...environment },
  }));
  const ofServers = [
    { path: 'Spawner.cmd', command: Spawner.cmd, environment: Spawner.environment },
    ...profiles,
  ].map(({ command, ...rest }) => ({
    ...rest,
    command:
      command &&
      withSingleuserProgram(command).map((word) =>
        word.replaceAll('{directory}', resolve(directory)),
      ),
    // The folder of a user need not be there before the first start.
    workingDirectory: directory,
  }));
  const isLocal = spawners.every((spawner) => spawner.class === 'local-process');
  return [...services, ...(isLocal ? ofServers : [])].flatMap(({ command, ...rest }) =>
    command === undefined ? [] : [{ ...rest, command }],
  );
}
