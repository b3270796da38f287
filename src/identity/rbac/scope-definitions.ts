import { type ScopeLabels, scopeLabels } from './scope-labels.ts';

/** The name of a scope that the hub itself checks. */
export type BuiltInScope = keyof typeof scopeLabels;

/** What a scope brings along, and who can hold it. */
interface ScopeRule {
  /** Scopes that come with this one, each with their own sub-scopes. */
  readonly subscopes: readonly string[];
  /** What it is about, and by that which filters mean something for it; none for a scope of the hub as a whole. */
  readonly of?: 'users' | 'servers' | 'groups' | 'services';
  /** Whether users never hold it, whatever roles they have. */
  readonly forServicesOnly?: true;
}

/** What a scope allows, in words and by the scopes that come with it. */
export interface ScopeDefinition extends ScopeLabels, ScopeRule {}

/** A scope of the operator's own services, as `Hub.custom_scopes` defines it. */
export interface CustomScope {
  readonly description: string;
  readonly subscopes: readonly string[];
}

/** Scopes that stand for others, decided by who holds them; they take no filter. */
export const metascopes: ReadonlySet<string> = new Set(['(no_scope)', 'self', 'inherit']);

/** What the metascope `self` stands for, each restricted to the user who holds it. */
export const selfScopes = [
  'read:users',
  'read:users:info',
  'users:shares',
  'read:shares',
  'users:activity',
  'servers',
  'tokens',
  'access:servers',
] as const;

/** What each scope brings along. */
const rules = {
  '(no_scope)': { subscopes: [] },
  self: { subscopes: [] },
  inherit: { subscopes: [] },
  'admin-ui': { subscopes: [] },
  'admin:users': {
    subscopes: ['admin:auth_state', 'users', 'read:users:info', 'read:roles:users', 'delete:users'],
    of: 'users',
  },
  'admin:auth_state': { subscopes: [], of: 'users' },
  users: { subscopes: ['read:users', 'list:users', 'users:activity'], of: 'users' },
  'delete:users': { subscopes: [], of: 'users' },
  'list:users': { subscopes: ['read:users:name'], of: 'users' },
  'read:users': {
    subscopes: ['read:users:name', 'read:users:groups', 'read:users:activity'],
    of: 'users',
  },
  'read:users:name': { subscopes: [], of: 'users' },
  'read:users:groups': { subscopes: [], of: 'users' },
  'read:users:info': { subscopes: [], of: 'users' },
  'read:users:activity': { subscopes: [], of: 'users' },
  'users:activity': { subscopes: ['read:users:activity'], of: 'users' },
  'read:roles': { subscopes: ['read:roles:users', 'read:roles:services', 'read:roles:groups'] },
  'read:roles:users': { subscopes: [], of: 'users' },
  'read:roles:services': { subscopes: [], of: 'services' },
  'read:roles:groups': { subscopes: [], of: 'groups' },
  'admin:roles': { subscopes: ['read:roles'] },
  'admin:servers': { subscopes: ['admin:server_state', 'servers'], of: 'servers' },
  'admin:server_state': { subscopes: [], of: 'servers' },
  servers: { subscopes: ['read:servers', 'start:servers', 'delete:servers'], of: 'servers' },
  'read:servers': { subscopes: ['read:users:name'], of: 'servers' },
  'start:servers': { subscopes: [], of: 'servers' },
  'delete:servers': { subscopes: [], of: 'servers' },
  tokens: { subscopes: ['read:tokens'], of: 'users' },
  'read:tokens': { subscopes: [], of: 'users' },
  'admin:groups': { subscopes: ['groups', 'read:roles:groups', 'delete:groups'], of: 'groups' },
  groups: { subscopes: ['read:groups', 'list:groups'], of: 'groups' },
  'list:groups': { subscopes: ['read:groups:name'], of: 'groups' },
  'read:groups': { subscopes: ['read:groups:name'], of: 'groups' },
  'read:groups:name': { subscopes: [], of: 'groups' },
  'delete:groups': { subscopes: [], of: 'groups' },
  'admin:services': {
    subscopes: ['list:services', 'read:services', 'read:roles:services'],
    of: 'services',
  },
  'list:services': { subscopes: ['read:services:name'], of: 'services' },
  'read:services': { subscopes: ['read:services:name'], of: 'services' },
  'read:services:name': { subscopes: [], of: 'services' },
  'read:hub': { subscopes: [] },
  'access:servers': { subscopes: [], of: 'servers' },
  'access:services': { subscopes: [], of: 'services' },
  shares: {
    subscopes: ['access:servers', 'read:shares', 'users:shares', 'groups:shares'],
    of: 'servers',
  },
  'read:shares': { subscopes: [], of: 'servers' },
  'users:shares': { subscopes: ['read:users:shares'], of: 'users' },
  'read:users:shares': { subscopes: [], of: 'users' },
  'groups:shares': { subscopes: ['read:groups:shares'], of: 'groups' },
  'read:groups:shares': { subscopes: [], of: 'groups' },
  proxy: { subscopes: [] },
  shutdown: { subscopes: [] },
  gateway: { subscopes: [], forServicesOnly: true },
  'admin:announcements': { subscopes: [] },
  'read:audit': { subscopes: [] },
  'read:metrics': { subscopes: [] },
} as const satisfies Record<BuiltInScope, ScopeRule>;

/** Every scope the hub itself checks. Checks, texts for people and documentation all come from here. */
export const scopeDefinitions = Object.fromEntries(
  Object.entries<ScopeRule>(rules).map(([name, rule]) => [
    name,
    { ...scopeLabels[name as BuiltInScope], ...rule },
  ]),
) as Readonly<Record<BuiltInScope, ScopeDefinition>>;

/** Every known scope, with what it brings along worked out once. */
export interface ScopeCatalogue {
  readonly names: readonly string[];
  get(name: string): ScopeDefinition | undefined;
  /** The scope itself and everything below it, or undefined for an unknown name. */
  withSubscopes(name: string): readonly string[] | undefined;
}

/** The built-in scopes and those of `Hub.custom_scopes`. */
export function createScopeCatalogue(
  customScopes: Readonly<Record<string, CustomScope>> = {},
): ScopeCatalogue {
  const definitions = new Map<string, ScopeDefinition>(Object.entries(scopeDefinitions));
  for (const [name, { description, subscopes }] of Object.entries(customScopes)) {
    if (!definitions.has(name))
      definitions.set(name, {
        description: description.trim().replace(/\.$/, ''),
        help: description,
        group: 'services',
        subscopes,
      });
  }
  const families = new Map(
    [...definitions.keys()].map((name) => [name, family(name, definitions)]),
  );
  return {
    names: [...definitions.keys()],
    get: (name) => definitions.get(name),
    withSubscopes: (name) => families.get(name),
  };
}

/**
 * Whether a server can be shared with a scope of this name. What a custom scope is restricted to is for the
 * operator's own services and servers to know.
 */
export function isShareable(name: string, catalogue: ScopeCatalogue): boolean {
  const definition = catalogue.get(name);
  return definition?.of === 'servers' || (definition !== undefined && name.startsWith('custom:'));
}

/** Whether a scope as written is one that users never hold. */
export function isForServicesOnly(scope: string, catalogue: ScopeCatalogue): boolean {
  const [name = ''] = scope.split('!', 1);
  return catalogue.get(name)?.forServicesOnly === true;
}

function family(name: string, definitions: ReadonlyMap<string, ScopeDefinition>): string[] {
  const members = new Set([name]);
  // A set yields what is added while it is walked, and never twice: custom scopes may form a circle.
  for (const member of members) {
    for (const subscope of definitions.get(member)?.subscopes ?? []) members.add(subscope);
  }
  return [...members];
}
