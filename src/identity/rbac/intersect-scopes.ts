import { includesScope } from './access-check.ts';
import type { Membership } from './membership.ts';
import { formatScope, parseScope, type Scope, type ScopeSet } from './scope.ts';

/**
 * Gives what both sides allow, as the membership stands at this moment. Both sides are expanded.
 * A scope survives when the other side includes it whole, so of two nested filters the narrower one
 * stays; two different groups overlap in the users who belong to both.
 */
export function intersectScopes(left: ScopeSet, right: ScopeSet, membership: Membership): ScopeSet {
  const common = new Set<string>();
  const leftGroups = keepIncluded(left, right, membership, common);
  const rightGroups = keepIncluded(right, left, membership, common);
  for (const { name, group } of leftGroups) {
    for (const other of rightGroups) {
      if (other.name !== name) continue;
      for (const user of membership
        .membersOf(group)
        .intersection(membership.membersOf(other.group))) {
        const scope: Scope = { name, filter: { kind: 'user', value: user } };
        if (!includesScope(common, scope, membership)) common.add(formatScope(scope));
      }
    }
  }
  return common;
}

interface GroupScope {
  readonly name: string;
  readonly group: string;
}

/** Adds the scopes that the other side includes; returns those on groups that it does not. */
function keepIncluded(
  scopes: ScopeSet,
  other: ScopeSet,
  membership: Membership,
  included: Set<string>,
): GroupScope[] {
  const remaining: GroupScope[] = [];
  for (const text of scopes) {
    if (other.has(text)) {
      included.add(text);
      continue;
    }
    const scope = parseScope(text);
    if (includesScope(other, scope, membership)) included.add(text);
    else if (scope.filter?.kind === 'group' && scope.filter.value !== undefined) {
      remaining.push({ name: scope.name, group: scope.filter.value });
    }
  }
  return remaining;
}
