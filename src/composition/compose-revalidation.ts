import type { Keyv } from 'keyv';
import type { Logger } from 'pino';
import { createLoginRevalidation } from '../authentication/login-revalidation.ts';
import { createSpawnHooks } from '../authentication/spawn-hooks.ts';
import { createUpstreamLogout } from '../authentication/upstream-logout.ts';
import type { Config } from '../config/config.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { HubDatabase } from '../store/database.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { ComposedLogin } from './compose-login.ts';
import type { Stores } from './stores.ts';

export function composeRevalidation(deps: {
  readonly config: Config;
  readonly database: HubDatabase;
  readonly stores: Stores;
  readonly keyv: KeyvSpaces;
  readonly login: ComposedLogin;
  readonly logins: LoginSessions;
  readonly log: Logger;
}) {
  const { config, database, stores, keyv, login, logins, log } = deps;
  const { identities, users } = stores;
  const { authenticators, refresh } = login;
  const revalidation = createLoginRevalidation({
    refresh,
    authenticators,
    logins,
    identities,
    database,
    log,
  });
  return {
    revalidation,
    spawnHooks: createSpawnHooks({
      authenticators,
      identities,
      users,
      revalidation,
      refreshesBeforeSpawn: config.Authenticator.refresh_pre_spawn,
      refreshesBeforeStop: config.Authenticator.refresh_pre_stop,
      log,
    }),
    endUpstreamLogins: createUpstreamLogout({
      authenticators,
      identities,
      logins,
      used: keyv.space('used-logout-tokens') as Keyv<true>,
      log,
    }),
  };
}
