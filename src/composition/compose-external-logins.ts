import type { Keyv } from 'keyv';
import { createAuthorizationRequestStates } from '../authentication/authorization-request-states.ts';
import { createExternalLogins, type ExternalLogins } from '../authentication/external-logins.ts';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { HubParts } from './hub-parts.ts';

export function composeExternalLogins(
  { login, pages, log }: Pick<HubParts, 'login' | 'pages' | 'log'>,
  {
    config,
    secrets,
    keyv,
  }: { readonly config: Config; readonly secrets: readonly Secret[]; readonly keyv: KeyvSpaces },
): ExternalLogins {
  const { publicUrl } = config;
  return createExternalLogins({
    authenticators: login.authenticators,
    loginService: login.loginService,
    linkIdentity: login.linkIdentity,
    requestStates: createAuthorizationRequestStates({
      sealer: createSealer(secrets, 'authorization-request-state'),
      used: keyv.space('used-login-states') as Keyv<true>,
      path: pages.urls.hub,
      isSecure: publicUrl.protocol === 'https:',
    }),
    callbackUrl: new URL('hub/oauth_callback', publicUrl).href,
    log,
  });
}
