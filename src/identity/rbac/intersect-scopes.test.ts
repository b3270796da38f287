import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { checkAccess, mayGrant, type Resource } from './access-check.ts';
import { intersectScopes } from './intersect-scopes.ts';
import { createMembership, type Membership } from './membership.ts';
import type { ScopeSet } from './scope.ts';

const membership = createMembership(
  new Map([
    ['staff', new Set(['alice', 'bob'])],
    ['ops', new Set(['bob', 'carol'])],
  ]),
);

describe('intersectScopes', () => {
  test.each([
    ['x', 'x', ['x']],
    ['x', 'y', []],
    ['x', 'x!user=alice', ['x!user=alice']],
    ['x', 'x!group=staff', ['x!group=staff']],
    ['x!user=alice', 'x!user=alice', ['x!user=alice']],
    ['x!user=alice', 'x!user=bob', []],
    ['x!user=alice', 'y!user=alice', []],
    ['x!user=alice', 'x!server=alice/gpu', ['x!server=alice/gpu']],
    ['x!user=bob', 'x!server=alice/gpu', []],
    ['x!group=staff', 'x!user=alice', ['x!user=alice']],
    ['x!group=staff', 'x!user=carol', []],
    ['x!group=staff', 'x!server=alice/', ['x!server=alice/']],
    ['x!group=staff', 'x!server=carol/', []],
    ['x!group=staff', 'x!group=ops', ['x!user=bob']],
    ['x!group=staff', 'y!group=ops', []],
    ['x!group=staff', 'x!group=unknown', []],
    ['x!service=wiki', 'x!service=wiki', ['x!service=wiki']],
    ['x!service=wiki', 'x!service=blog', []],
    ['x!service=wiki', 'x!user=wiki', []],
    ['x!server=alice/', 'x!server=alice/gpu', []],
  ])('%s and %s have %j in common', (left, right, common) => {
    expect(intersectScopes(new Set([left]), new Set([right]), membership)).toEqual(new Set(common));
    expect(intersectScopes(new Set([right]), new Set([left]), membership)).toEqual(new Set(common));
  });

  test('does not spell out the members of a group that both sides hold', () => {
    const both = new Set(['x!group=staff', 'x!group=ops']);
    expect(intersectScopes(both, both, membership)).toEqual(both);
  });
});

describe('in a small world, for any scopes and any groups', () => {
  const users = ['a', 'b', 'c'];
  const groups = ['g', 'h', 'i'];
  const services = ['s', 't'];
  const serverNames = ['', 'x'];
  const scopeNames = ['read:users', 'servers', 'access:services'];

  const resources: readonly (Resource | undefined)[] = [
    undefined,
    ...users.map((name) => ({ kind: 'user', name }) as const),
    ...groups.map((name) => ({ kind: 'group', name }) as const),
    ...services.map((name) => ({ kind: 'service', name }) as const),
    ...users.flatMap((userName) =>
      serverNames.map((serverName) => ({ kind: 'server', userName, serverName }) as const),
    ),
  ];
  const filters = [
    '',
    ...users.map((name) => `!user=${name}`),
    ...groups.map((name) => `!group=${name}`),
    ...services.map((name) => `!service=${name}`),
    ...users.flatMap((user) => serverNames.map((server) => `!server=${user}/${server}`)),
  ];

  const scopeSets = fc
    .array(
      fc
        .tuple(fc.constantFrom(...scopeNames), fc.constantFrom(...filters))
        .map(([name, filter]) => name + filter),
      { maxLength: 7 },
    )
    .map((scopes): ScopeSet => new Set(scopes));
  const memberships = fc
    .tuple(...groups.map(() => fc.subarray(users)))
    .map((members) =>
      createMembership(new Map(groups.map((group, index) => [group, new Set(members[index])]))),
    );

  const permissions = (grantedScopes: ScopeSet, membership: Membership) =>
    scopeNames.flatMap((name) =>
      resources.map(
        (resource) => checkAccess(grantedScopes, name, resource, membership) === 'granted',
      ),
    );
  const property = (
    check: (left: ScopeSet, right: ScopeSet, membership: Membership) => void,
  ): void => fc.assert(fc.property(scopeSets, scopeSets, memberships, check), runs(1000));

  test('the intersection allows exactly what both sides allow', () => {
    property((left, right, membership) => {
      const ofLeft = permissions(left, membership);
      const ofRight = permissions(right, membership);
      expect(permissions(intersectScopes(left, right, membership), membership)).toEqual(
        ofLeft.map((allowed, index) => allowed && ofRight[index]),
      );
    });
  });

  test('the intersection does not depend on the order', () => {
    property((left, right, membership) => {
      expect(intersectScopes(left, right, membership)).toEqual(
        intersectScopes(right, left, membership),
      );
    });
  });

  test('the intersection with itself changes nothing', () => {
    property((scopes, _, membership) => {
      expect(intersectScopes(scopes, scopes, membership)).toEqual(scopes);
    });
  });

  test('intersecting again with either side changes nothing', () => {
    property((left, right, membership) => {
      const common = intersectScopes(left, right, membership);
      expect(intersectScopes(common, left, membership)).toEqual(common);
      expect(intersectScopes(right, common, membership)).toEqual(common);
    });
  });

  test('no user may grant what allows more than they are allowed', () => {
    property((granter, wanted, membership) => {
      if (!mayGrant(granter, wanted, membership)) return;
      const ofGranter = permissions(granter, membership);
      permissions(wanted, membership).forEach((allowed, index) => {
        if (allowed) expect(ofGranter[index]).toBe(true);
      });
    });
  });

  test('whatever two sides have in common, either may grant', () => {
    property((left, right, membership) => {
      const common = intersectScopes(left, right, membership);
      expect(mayGrant(left, common, membership)).toBe(true);
      expect(mayGrant(right, common, membership)).toBe(true);
    });
  });
});
