import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { SystemAccountStore } from '../../identity/users/system-account-store.ts';
import type { User } from '../../identity/users/user-store.ts';
import type { SpawnerConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { findUserId, serverAccountProblem } from '../../spawning/processes/system-user.ts';

/** On whose account of the machine, and with which files, a user's servers run. */
export interface ServerAccount {
  /** What `{username}` stands for in `home_dir`. */
  readonly name: string;
  /** Whether the name is this user's alone, for ever. */
  readonly isClaimed: boolean;
  readonly systemUser: string | undefined;
}

/**
 * Decides the account of a user's servers. Throws `conflict` when it is another user's, and
 * `bad_request` when users' servers may not run under it.
 */
export type DecideAccount = (user: User) => Promise<ServerAccount>;

export function createDecideAccount(
  config: Pick<
    SpawnerConfig,
    | 'system_user'
    | 'create_system_users'
    | 'home_dir'
    | 'allowed_system_users'
    | 'volumes'
    | 'profiles'
  >,
  store: Pick<SystemAccountStore, 'claim'>,
  /** Whether a spawner keeps something by the account, whatever the configuration says. */
  isNeeded: boolean,
  findId = findUserId,
): DecideAccount {
  const { system_user: template, home_dir, allowed_system_users: allowed } = config;
  const { create_system_users: creation } = config;
  const volumes = [config.volumes, ...config.profiles.map((profile) => profile.volumes ?? [])];
  const places = [
    template,
    home_dir,
    ...volumes.flat().flatMap(({ source, sub_path }) => [source, sub_path]),
  ];
  const isOfUser = isNeeded || places.some((text) => text?.includes('{username}') === true);

  return async (user) => {
    const name = isOfUser ? await store.claim(user) : user.name;
    const systemUser = template?.replaceAll('{username}', name);
    if (systemUser !== undefined) {
      let userId = await findId(systemUser);
      if (userId === undefined && creation !== undefined) {
        await createSystemUser(creation, systemUser, findId);
        userId = await findId(systemUser);
      }
      const problem =
        userId === undefined
          ? undefined
          : await serverAccountProblem({ name: systemUser, userId }, allowed);
      if (problem !== undefined) throw new HubError('bad_request', problem);
    }
    return { name, isClaimed: isOfUser, systemUser };
  };
}

/** How long the command has that makes an account. */
const creationMs = 30_000;
/** What no program takes for an option, or a path. */
const plainAccount = /^[A-Za-z0-9_][A-Za-z0-9_.@-]*$/;

/** Throws `upstream_failed` where there is no account afterwards: of two starts at once, one finds that of the other. */
async function createSystemUser(
  command: readonly string[],
  name: string,
  findId: typeof findUserId,
): Promise<void> {
  const [program = '', ...args] = command.map((word) => word.replaceAll('{account}', name));
  const failed = (cause: unknown) =>
    new HubError(
      'upstream_failed',
      text`The account "${name}" of this machine could not be made.`,
      {
        hint: text`The operator finds out why by the command of Spawner.create_system_users.`,
        cause,
      },
    );
  if (!plainAccount.test(name)) throw failed(undefined);
  try {
    await promisify(execFile)(program, args, { timeout: creationMs });
  } catch (error) {
    if ((await findId(name)) === undefined) throw failed(error);
  }
}
