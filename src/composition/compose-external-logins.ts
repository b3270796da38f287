import type { Keyv } from 'keyv';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { createAuthorizationRequestStates } from '../pages/login/authorization-request-states.ts';
import { createExternalLogins, type ExternalLogins } from '../pages/login/external-logins.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { HubParts } from './hub-parts.ts';

/** Creates what sends browsers to external providers. */
export function composeExternalLogins(
  deps: Pick<HubParts, 'pages' | 'login' | 'sessions' | 'metrics' | 'log'>,
  {
    config,
    secrets,
    keyv,
  }: { readonly config: Config; readonly secrets: readonly Secret[]; readonly keyv: KeyvSpaces },
): ExternalLogins {
  const { pages, login, sessions, metrics, log } = deps;
  const { publicUrl } = config;
  return createExternalLogins({
    pages,
    authenticators: login.authenticators,
    loginService: login.loginService,
    linkIdentity: login.linkIdentity,
    sessions,
    requestStates: createAuthorizationRequestStates({
      sealer: createSealer(secrets, 'authorization-request-state'),
      used: keyv.space('used-login-states') as Keyv<true>,
      path: pages.urls.hub,
      isSecure: publicUrl.protocol === 'https:',
    }),
    metrics,
    callbackUrl: new URL('hub/oauth_callback', publicUrl).href,
    defaultUrl: config.Hub.default_url ?? pages.urls.home,
    log,
  });
}
