import { posix, resolve } from 'node:path';
import type { Config } from '../../platform/config/config.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { explainMover, findMover, findOperator } from '../../platform/files/movable-path.ts';
import { hasCapability, maySwitchAccounts } from '../../spawning/processes/system-user.ts';

/** Variables that ld.so(8) and the C library read before a program itself begins. */
const loaderVariable = /^(?:LD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH)$/;

/** Warns of what makes a hub that may switch accounts depend on what those accounts can change. */
export async function checkAccountRisks(config: Config): Promise<readonly ConfigProblem[]> {
  const { Hub, Spawner } = config;
  const isSwitching =
    Spawner.system_user !== undefined || Hub.services.some(({ user }) => user !== undefined);
  if (!isSwitching) return [];
  const found = [...loaderWarnings(config), ...homeWarnings(config)];
  if (!maySwitchAccounts()) return found;
  if (Spawner.socket && Spawner.system_user !== undefined && !hasCapability('ignoreModes')) {
    found.push({
      path: 'Spawner.socket',
      message:
        'the hub may not open the sockets in users’ folders; add CAP_DAC_OVERRIDE to its capabilities, or leave it out',
    });
  }
  return [...found, ...(await pathWarnings(config))];
}

function loaderWarnings({ Hub, Spawner }: Config): ConfigProblem[] {
  const environments = [
    ...(Spawner.system_user === undefined
      ? []
      : [
          { path: 'Spawner.environment', variables: Spawner.environment },
          ...Spawner.profiles.map(({ environment }, index) => ({
            path: `Spawner.profiles[${index}].environment`,
            variables: environment,
          })),
        ]),
    ...Hub.services.map(({ user, environment }, index) => ({
      path: `Hub.services[${index}].environment`,
      variables: user === undefined ? undefined : environment,
    })),
  ];
  return environments.flatMap(({ path, variables = {} }) =>
    Object.keys(variables)
      .filter((name) => loaderVariable.test(name))
      .map((name) => ({
        path: `${path}.${name}`,
        message:
          'decides what is loaded into every program of the server, that which checks its visitors too; name no folder that its user can write to, or set it in the command alone',
      })),
  );
}

function homeWarnings({ Spawner: { system_user, home_dir } }: Config): ConfigProblem[] {
  const [, below = ''] = /\{username\}[^/]*\/(.*)$/.exec(posix.normalize(home_dir)) ?? [];
  if (system_user === undefined || !below.replace(/\/$/, '')) return [];
  return [
    {
      path: 'Spawner.home_dir',
      message: `${below} lies below a folder of the user, who can put a link there: the hub makes it under the user’s account, and only if that account can`,
    },
  ];
}

async function pathWarnings({ Hub, directory }: Config): Promise<ConfigProblem[]> {
  const trusted = await findOperator(directory);
  const settings = { log_dir: `${Hub.log_dir}/server.log`, audit_file: Hub.audit_file };
  const found = await Promise.all(
    Object.entries(settings).map(async ([name, file]) => {
      if (file === undefined) return [];
      const path = resolve(directory, file);
      const mover = await findMover(path, trusted).catch(() => undefined);
      return mover === undefined
        ? []
        : [{ path: `Hub.${name}`, message: explainMover(path, mover) }];
    }),
  );
  return found.flat();
}
