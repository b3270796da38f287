import type { Keyv } from 'keyv';
import type { Logger } from 'pino';
import { createLoginUpkeep, type LoginUpkeep } from '../authentication/login-upkeep.ts';
import { createSpawnHooks, type SpawnHooks } from '../authentication/spawn-hooks.ts';
import { createUpstreamLogout, type EndUpstreamLogins } from '../authentication/upstream-logout.ts';
import type { Config } from '../config/config.ts';
import type { AccessToken } from '../oauth/tokens/access-token.ts';
import type { Caller } from '../rbac/caller.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { LoginParts } from './login-parts.ts';
import type { Stores } from './stores.ts';

/** What keeps logins true after they were made. */
export interface UpkeepParts {
  readonly upkeep: LoginUpkeep;
  readonly spawnHooks: SpawnHooks;
  readonly endUpstreamLogins: EndUpstreamLogins;
  /** Whether a caller with a token still has a login at their provider. */
  readonly admits: (caller: Caller) => Promise<boolean>;
  readonly admitsToken: (token: AccessToken) => Promise<boolean>;
}

/** Creates the upkeep of logins. */
export function createUpkeepParts(parts: {
  readonly config: Config;
  readonly stores: Stores;
  readonly keyv: KeyvSpaces;
  readonly login: LoginParts;
  readonly logins: LoginSessions;
  readonly log: Logger;
}): UpkeepParts {
  const { config, stores, keyv, login, logins, log } = parts;
  const { identities, users } = stores;
  const { authenticators, refresh } = login;
  const upkeep = createLoginUpkeep({ refresh, authenticators, logins, identities, users, log });
  return {
    upkeep,
    spawnHooks: createSpawnHooks({
      authenticators,
      identities,
      users,
      upkeep,
      refreshesBeforeSpawn: config.Authenticator.refresh_pre_spawn,
      log,
    }),
    endUpstreamLogins: createUpstreamLogout({
      authenticators,
      identities,
      logins,
      used: keyv.space('used-logout-tokens') as Keyv<true>,
      log,
    }),
    // A server's own token speaks for the server: it reports activity while nobody is there.
    admits: async ({ user, accessToken }) =>
      user === undefined ||
      accessToken?.server !== undefined ||
      (await upkeep.admits({ userId: user.id, sessionId: accessToken?.sessionId })),
    admitsToken: async ({ userId, sessionId, server }) =>
      userId === undefined || server !== undefined || (await upkeep.admits({ userId, sessionId })),
  };
}
