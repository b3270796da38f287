import type { Keyv } from 'keyv';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { createExternalLogins, type ExternalLogins } from '../pages/login/external-logins.ts';
import { createLoginRoundTrips } from '../pages/login/login-round-trips.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { HubParts } from './hub-parts.ts';

/** Creates what sends browsers to external providers. */
export function createExternalLoginParts(
  parts: Pick<HubParts, 'kit' | 'login' | 'sessions' | 'metrics' | 'log'>,
  {
    config,
    secrets,
    keyv,
  }: { readonly config: Config; readonly secrets: readonly Secret[]; readonly keyv: KeyvSpaces },
): ExternalLogins {
  const { kit, login, sessions, metrics, log } = parts;
  const { publicUrl } = config;
  return createExternalLogins({
    kit,
    authenticators: login.authenticators,
    loginService: login.loginService,
    linkIdentity: login.linkIdentity,
    sessions,
    roundTrips: createLoginRoundTrips({
      sealer: createSealer(secrets, 'login-round-trip'),
      used: keyv.space('used-login-states') as Keyv<true>,
      path: kit.urls.hub,
      isSecure: publicUrl.protocol === 'https:',
    }),
    metrics,
    callbackUrl: new URL('hub/oauth_callback', publicUrl).href,
    defaultUrl: config.Hub.default_url ?? kit.urls.home,
    log,
  });
}
