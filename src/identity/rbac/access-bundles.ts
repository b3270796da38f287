import { HubError } from '../../platform/errors.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import type { Role } from './role.ts';
import { formatScope, parseScope, readScope, type ScopeFilter } from './scope.ts';
import type { ScopeCatalogue } from './scope-definitions.ts';
import { restrictionOf } from './scope-descriptions.ts';

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
export function accessOf({
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
