import { HubError } from '../../platform/errors.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import { mayGrant } from './access-check.ts';
import { emptyMembership } from './membership.ts';
import {
  expandScopes,
  formatScope,
  parseScope,
  readScope,
  type ScopeFilter,
  type ScopeSet,
} from './scope.ts';
import type { ScopeCatalogue } from './scope-definitions.ts';
import { restrictionOf } from './scope-descriptions.ts';

/** A named bundle of scopes. */
export interface Role {
  readonly name: string;
  readonly description: string;
  /** As written, before expansion: may hold metascopes and self references. */
  readonly scopes: readonly string[];
  /** `default`, `config`, `api`, or the name of the authenticator that made it. */
  readonly origin: string;
}

export type RoleSubjectKind = 'user' | 'group' | 'service';

/** Who holds a role. */
export interface RoleAssignment {
  readonly roleName: string;
  readonly subjectKind: RoleSubjectKind;
  readonly subjectName: string;
  /** Who gave it: `config`, `api`, or an authenticator's name. */
  readonly origin: string;
}

/** Everything that decides which roles are held. */
export type RoleHolder =
  | {
      readonly kind: 'user';
      readonly name: string;
      readonly isAdmin: boolean;
      readonly groupNames: readonly string[];
    }
  | { readonly kind: 'service'; readonly name: string; readonly isAdmin: boolean }
  | { readonly kind: 'group'; readonly name: string };

/** Names the roles held without an assignment: `user` by every user, `admin` by administrators. */
export function implicitRoleNames(holder: RoleHolder): readonly string[] {
  if (holder.kind === 'group') return [];
  const admin = holder.isAdmin ? ['admin'] : [];
  return holder.kind === 'user' ? ['user', ...admin] : admin;
}

/** Where access can hold: in one group, service or server, or everywhere. */
export const placeKinds = ['group', 'service', 'server', 'all'] as const;
export type PlaceKind = (typeof placeKinds)[number];

/** Undefined for everywhere. */
export type AccessPlace = (ScopeFilter & { readonly value: string }) | undefined;

export interface AccessBundle {
  readonly title: Phrase;
  /** What it allows, in a sentence. */
  readonly help: Phrase;
  readonly places: readonly PlaceKind[];
  /** Each is limited to the place, but for `admin-ui`. */
  readonly scopes: readonly string[];
}

const course = ['admin-ui', 'list:groups', 'read:groups', 'read:users:info'] as const;

/** Rights that people give together, by the names of the roles that hold them. */
export const accessBundles = {
  'course-assistant': {
    title: text`Course assistant`,
    help: text`See the members of a group, and start, stop and open their servers.`,
    places: ['group', 'all'],
    scopes: [...course, 'list:users', 'read:users', 'servers', 'access:servers'],
  },
  'course-lead': {
    title: text`Course lead`,
    help: text`The same, and change the group, the accounts of its members and their passwords.`,
    places: ['group', 'all'],
    scopes: [...course, 'groups', 'admin:users', 'servers', 'access:servers'],
  },
  support: {
    title: text`Support`,
    help: text`See users, and start and stop their servers without opening them.`,
    places: ['group', 'all'],
    scopes: ['admin-ui', 'list:users', 'read:users', 'read:users:info', 'servers'],
  },
  auditor: {
    title: text`Auditor`,
    help: text`Read everything on the administration pages and change nothing.`,
    places: ['all'],
    scopes: [
      ...course,
      'list:users',
      'read:users',
      'read:roles',
      'read:servers',
      'read:tokens',
      'list:services',
      'read:services',
      'read:hub',
      'read:audit',
      'read:metrics',
    ],
  },
  'service-manager': {
    title: text`Service manager`,
    help: text`Open a service, read its output, and start, stop and restart it.`,
    places: ['service', 'all'],
    scopes: ['admin-ui', 'admin:services', 'access:services'],
  },
  'service-user': {
    title: text`Service user`,
    help: text`Open a service.`,
    places: ['service', 'all'],
    scopes: ['access:services'],
  },
  'server-helper': {
    title: text`Server helper`,
    help: text`Open one server, and start and stop it.`,
    places: ['server'],
    scopes: ['servers', 'access:servers'],
  },
} as const satisfies Record<string, AccessBundle>;

/** What access is chosen by: a bundle, or scopes of one's own. */
export const accessKinds = [...(Object.keys(accessBundles) as BundleName[]), 'custom'] as const;
type BundleName = keyof typeof accessBundles;
export type AccessKind = (typeof accessKinds)[number];

/** Which places a scope can be limited to, by what it is about. */
const placesOf = {
  users: ['group'],
  servers: ['group', 'server'],
  groups: ['group'],
  services: ['service'],
} as const satisfies Record<string, readonly PlaceKind[]>;

/**
 * Scopes as a role holds them, each limited to the place unless it has a filter already. Throws `bad_request` for one
 * that holds everywhere or nowhere: no one shall get more than the place that was chosen.
 */
export function scopesAt(
  place: AccessPlace,
  scopes: readonly string[],
  catalogue: ScopeCatalogue,
): readonly string[] {
  if (place === undefined) return scopes;
  return scopes.map((written) => {
    const { name, filter } = parseScope(written);
    const definition = catalogue.get(name);
    // What does not exist is refused with the role.
    if (name === 'admin-ui' || filter !== undefined || definition === undefined) return written;
    const places: readonly PlaceKind[] = definition.of === undefined ? [] : placesOf[definition.of];
    if (name.startsWith('custom:') || places.includes(place.kind as PlaceKind))
      return formatScope({ name, filter: place });
    throw new HubError(
      'bad_request',
      text`“${definition.description}” cannot be given as “${restrictionOf({ filter: place }) ?? ''}”.`,
      { hint: text`Leave it out, or give it everywhere.` },
    );
  });
}

/** What a role for some access is for, such as `Course assistant (only group statistics)`. */
export function describeAccess(kind: AccessKind, place: ScopeFilter | undefined): Phrase {
  const title = kind === 'custom' ? text`Chosen permissions` : accessBundles[kind].title;
  const restriction = restrictionOf({ filter: place });
  return restriction === undefined ? title : text`${title} (${restriction})`;
}

/** The same, read back from the role; undefined for one that was made or described otherwise. */
function accessOf({
  name,
  description,
  scopes,
}: Pick<Role, 'name' | 'description' | 'scopes'>): Phrase | undefined {
  const filters = scopes.flatMap((scope) => readScope(scope).scope?.filter ?? []);
  return accessKinds
    .filter((kind) => name.startsWith(kind))
    .map((kind) => describeAccess(kind, filters[0]))
    .find((made) => String(made) === description);
}

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
