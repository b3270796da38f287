import type { Context } from 'koa';
import { HubError } from '../errors.ts';
import { checkAccess, type Resource } from '../rbac/access-check.ts';
import type { Caller } from '../rbac/caller.ts';
import type { Membership } from '../rbac/membership.ts';
import { callerOf } from './caller-middleware.ts';

/**
 * Requires any of some scopes on a resource, and returns the caller.
 *
 * Without the scope at all the answer is 403. With the scope but not for this resource it is 404, the
 * same as for a resource that does not exist, so that a caller learns nothing about others.
 */
export function requireScopes(
  ctx: Context,
  anyOf: readonly string[],
  membership: Membership,
  resource?: Resource,
): Caller {
  const caller = callerOf(ctx);
  const verdicts = anyOf.map((scope) => checkAccess(caller.scopes, scope, resource, membership));
  if (verdicts.includes('granted')) return caller;
  if (verdicts.includes('filtered') && resource !== undefined) {
    throw new HubError('not_found', 'No access to resources or resources not found.');
  }
  throw new HubError('forbidden', 'Action is not authorized with current scopes.', {
    hint: `It requires any of: ${anyOf.join(', ')}.`,
  });
}
