import { checkAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Membership } from '../../rbac/membership.ts';
import type { ScopeSet } from '../../rbac/scope.ts';
import type { Client } from './client.ts';

/** What a user holds at the moment, where that includes access to a client; undefined where it does not. */
export async function scopesForClient(
  client: Client,
  userName: string,
  authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membership'>,
): Promise<{ readonly grantedScopes: ScopeSet; readonly membership: Membership } | undefined> {
  const [grantedScopes, membership] = await Promise.all([
    authorizer.scopesOfOwner({ kind: 'user', name: userName }),
    authorizer.membership(),
  ]);
  const access = checkAccess(grantedScopes, client.accessScope, undefined, membership);
  return access === 'granted' ? { grantedScopes, membership } : undefined;
}
