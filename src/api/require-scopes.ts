import type { Context } from 'koa';
import type { Resource } from '../rbac/access-check.ts';
import type { Caller } from '../rbac/caller.ts';
import type { Membership } from '../rbac/membership.ts';
import { requireAccess } from '../rbac/require-access.ts';
import { callerOf } from './caller-middleware.ts';

/** Requires any of some scopes on a resource as `requireAccess` does, and returns the caller. */
export function requireScopes(
  ctx: Context,
  anyOf: readonly string[],
  membership: Membership,
  resource?: Resource,
): Caller {
  const caller = callerOf(ctx);
  requireAccess(caller.scopes, anyOf, membership, resource);
  return caller;
}
