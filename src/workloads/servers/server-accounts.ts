import type { SystemAccountStore } from '../../identity/users/system-account-store.ts';
import type { User } from '../../identity/users/user-store.ts';
import type { SpawnerConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
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
    'system_user' | 'home_dir' | 'allowed_system_users' | 'volumes' | 'profiles'
  >,
  store: Pick<SystemAccountStore, 'claim'>,
  /** Whether a spawner keeps something by the account, whatever the configuration says. */
  isNeeded: boolean,
): DecideAccount {
  const { system_user: template, home_dir, allowed_system_users: allowed } = config;
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
      const userId = await findUserId(systemUser);
      const problem =
        userId === undefined
          ? undefined
          : await serverAccountProblem({ name: systemUser, userId }, allowed);
      if (problem !== undefined) throw new HubError('bad_request', problem);
    }
    return { name, isClaimed: isOfUser, systemUser };
  };
}
