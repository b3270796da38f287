import { createLoginRevalidation } from '../identity/authentication/login-revalidation.ts';
import { createSpawnHooks } from '../identity/authentication/spawn-hooks.ts';
import { createUpstreamLogout } from '../identity/authentication/upstream-logout.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import type { ComposedLogin } from './compose-login.ts';
import type { Foundation } from './foundation.ts';

/** What keeps logins and servers to what the login providers say of their users. */
export function composeRevalidation(
  { config, database, stores, keyv, log }: Foundation,
  { login, logins }: { readonly login: ComposedLogin; readonly logins: LoginSessions },
) {
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
      used: keyv.space<true>('used-logout-tokens'),
      log,
    }),
  };
}
