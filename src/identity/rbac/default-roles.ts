import { type Phrase, text } from '../../platform/texts/text.ts';
import { accessOf } from './access-bundles.ts';
import { mayGrant } from './access-check.ts';
import { emptyMembership } from './membership.ts';
import type { Role } from './role.ts';
import { expandScopes, type ScopeSet } from './scope.ts';
import type { ScopeCatalogue } from './scope-definitions.ts';

const descriptions = {
  user: text`What every user may do.`,
  admin: text`What administrators may do.`,
  server: text`What the token of a user's server allows the server itself.`,
  token: text`What a new access token allows when nothing else is asked for.`,
};

/** The roles that always exist. Configuration may redefine them, except for what `admin` allows. */
export const defaultRoles = {
  user: {
    name: 'user',
    description: String(descriptions.user),
    scopes: ['self'],
    origin: 'default',
  },
  admin: {
    name: 'admin',
    description: String(descriptions.admin),
    scopes: [
      'admin-ui',
      'admin:users',
      'admin:servers',
      'admin:services',
      'tokens',
      'admin:groups',
      'list:services',
      'read:services',
      'read:hub',
      'proxy',
      'shutdown',
      'access:services',
      'access:servers',
      'admin:roles',
      'read:roles',
      'read:metrics',
      'read:audit',
      'admin:announcements',
      'shares',
    ],
    origin: 'default',
  },
  server: {
    name: 'server',
    description: String(descriptions.server),
    scopes: ['users:activity!user', 'access:servers!server'],
    origin: 'default',
  },
  token: {
    name: 'token',
    description: String(descriptions.token),
    scopes: ['inherit'],
    origin: 'default',
  },
} as const satisfies Record<string, Role>;

/** Finds a default role as it is without any configuration. */
export function findDefaultRole(name: string): Role | undefined {
  return Object.hasOwn(defaultRoles, name)
    ? defaultRoles[name as keyof typeof defaultRoles]
    : undefined;
}

/** What a role is for, as pages show it: in the language of the reader where it comes with the hub. */
export function roleDescription(role: Pick<Role, 'name' | 'description' | 'scopes'>): Phrase {
  const { name, description } = role;
  const isAsMade = findDefaultRole(name)?.description === description;
  if (isAsMade) return descriptions[name as keyof typeof descriptions];
  return accessOf(role) ?? description;
}

/**
 * Gives everything an administrator may do. Who makes a user an administrator, or acts on the
 * account of one, must hold all of it.
 */
export function adminScopes(catalogue: ScopeCatalogue): ScopeSet {
  return expandScopes(defaultRoles.admin.scopes, { catalogue });
}

/**
 * What a holder of these scopes may hand to others. Custom scopes are power in services and none over the
 * hub, so a caller who may do all that an administrator may is stopped by none of them.
 */
export function grantableScopes(grantedScopes: ScopeSet, catalogue: ScopeCatalogue): ScopeSet {
  if (!mayGrant(grantedScopes, adminScopes(catalogue), emptyMembership)) return grantedScopes;
  return grantedScopes.union(new Set(catalogue.names.filter((name) => name.startsWith('custom:'))));
}
