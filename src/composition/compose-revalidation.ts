import type { Keyv } from 'keyv';
import type { Logger } from 'pino';
import {
  createLoginRevalidation,
  type LoginRevalidation,
} from '../authentication/login-revalidation.ts';
import { createSpawnHooks, type SpawnHooks } from '../authentication/spawn-hooks.ts';
import { createUpstreamLogout, type EndUpstreamLogins } from '../authentication/upstream-logout.ts';
import type { Config } from '../config/config.ts';
import type { AccessToken } from '../oauth/tokens/access-token.ts';
import type { Caller } from '../rbac/caller.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { ComposedLogin } from './compose-login.ts';
import type { Stores } from './stores.ts';

/** What happens to logins and servers when a login provider changes its mind about a user. */
export interface ComposedRevalidation {
  readonly revalidate: LoginRevalidation['revalidate'];
  readonly spawnHooks: SpawnHooks;
  readonly endUpstreamLogins: EndUpstreamLogins;
  /** Whether the provider of a caller still knows them; checked for callers with a token. */
  readonly hasCurrentLogin: (caller: Caller) => Promise<boolean>;
  readonly isTokenOfCurrentLogin: (token: AccessToken) => Promise<boolean>;
}

export function composeRevalidation(deps: {
  readonly config: Config;
  readonly stores: Stores;
  readonly keyv: KeyvSpaces;
  readonly login: ComposedLogin;
  readonly logins: LoginSessions;
  readonly log: Logger;
}): ComposedRevalidation {
  const { config, stores, keyv, login, logins, log } = deps;
  const { identities, users } = stores;
  const { authenticators, refresh } = login;
  const revalidation = createLoginRevalidation({
    refresh,
    authenticators,
    logins,
    identities,
    users,
    log,
  });
  return {
    revalidate: revalidation.revalidate,
    spawnHooks: createSpawnHooks({
      authenticators,
      identities,
      users,
      revalidation,
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
    hasCurrentLogin: async ({ user, accessToken }) =>
      user === undefined ||
      accessToken?.server !== undefined ||
      (await revalidation.hasCurrentLogin({ userId: user.id, sessionId: accessToken?.sessionId })),
    isTokenOfCurrentLogin: async ({ userId, sessionId, server }) =>
      userId === undefined ||
      server !== undefined ||
      (await revalidation.hasCurrentLogin({ userId, sessionId })),
  };
}
