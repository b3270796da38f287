import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { checkAccess, type Resource } from './access-check.ts';
import type { Membership } from './membership.ts';
import type { ScopeSet } from './scope.ts';

/**
 * Requires any of some scopes on a resource.
 *
 * Without the scope at all the answer is `forbidden`. With the scope but not for this resource it is
 * `not_found`, the same as for a resource that does not exist, so that a caller learns nothing about
 * others.
 */
export function requireAccess(
  grantedScopes: ScopeSet,
  anyOf: readonly string[],
  membership: Membership,
  resource?: Resource,
): void {
  const verdicts = anyOf.map((scope) => checkAccess(grantedScopes, scope, resource, membership));
  if (verdicts.includes('granted')) return;
  if (verdicts.includes('filtered') && resource !== undefined) {
    throw notReachable();
  }
  throw new HubError('forbidden', text`Action is not authorized with current scopes.`, {
    hint: text`It requires any of: ${anyOf.join(', ')}.`,
  });
}

/** The refusal of a resource that is not there, or to which the caller has no right. */
export function notReachable(): HubError {
  return new HubError('not_found', text`No access to resources or resources not found.`, {
    isRefusal: true,
  });
}
