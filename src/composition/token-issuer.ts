import type { Config } from '../config/config.ts';
import type { AccessTokenStore } from '../oauth/tokens/access-token-store.ts';
import { createTokenIssuer, type TokenIssuer } from '../oauth/tokens/token-issuer.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { HubDatabase } from '../store/database.ts';

/** Issues tokens within the limits of the configuration. */
export function composeTokenIssuer({
  config: { Hub },
  database,
  accessTokens,
  authorizer,
}: {
  readonly config: Pick<Config, 'Hub'>;
  readonly database: Pick<HubDatabase, 'now'>;
  readonly accessTokens: AccessTokenStore;
  readonly authorizer: Authorizer;
}): TokenIssuer {
  return createTokenIssuer({
    now: database.now,
    accessTokens,
    authorizer,
    maxLifetimeSeconds: Hub.token_expires_in_max_seconds,
    limitPerUser: Hub.api_token_limit_per_user,
  });
}
