import type Router from '@koa/router';
import { accountRoutes } from '../entrances/pages/account/account-routes.ts';
import { passkeyRoutes } from '../entrances/pages/account/passkey-routes.ts';
import { secondFactorRoutes } from '../entrances/pages/account/second-factor-routes.ts';
import { sessionPageRoutes } from '../entrances/pages/account/session-routes.ts';
import { tokenPageRoutes } from '../entrances/pages/account/token-routes.ts';
import type { Entrance } from '../entrances/pages/forms/binding.ts';
import { createBoundPages } from '../entrances/pages/forms/bound-pages.ts';
import { createShownOnce } from '../entrances/pages/shown-once.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { OperationDeps } from '../operations/operations.ts';
import type { Perform } from '../operations/perform.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { Foundation } from './foundation.ts';

/** What users do with their own account. */
export function addAccountPages(
  router: Router,
  { config, secrets }: Foundation,
  deps: {
    readonly perform: Perform<OperationDeps>;
    readonly entrances: Entrance[];
    readonly browser: Pick<ComposedBrowser, 'pages' | 'confirmLogin'>;
    readonly authorizer: Authorizer;
  },
): void {
  const { perform, entrances, authorizer } = deps;
  const bound = createBoundPages(router, { ...deps.browser, perform, authorizer, entrances });
  accountRoutes(bound);
  secondFactorRoutes(bound);
  passkeyRoutes(bound);
  sessionPageRoutes(bound);
  tokenPageRoutes(bound, {
    catalogue: authorizer.catalogue,
    maxLifetimeSeconds: config.Hub.token_expires_in_max_seconds,
    newTokens: createShownOnce(createSealer(secrets, 'shown-once'), 'token'),
  });
}
