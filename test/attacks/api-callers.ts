import {
  createScopeCatalogue,
  isForServicesOnly,
  metascopes,
  selfScopes,
} from '../../src/identity/rbac/scope-definitions.ts';
import type { OperationDeclaration } from '../../src/operations/operation.ts';
import type { World } from './api-world.ts';

/** A right, as the roles or the token of a caller have it. */
export interface Right {
  readonly scope: string;
  readonly filter?: {
    readonly kind: 'user' | 'group' | 'server' | 'service';
    readonly value: string;
  };
}

/** Somebody who calls the API, with everything they may do. */
export interface Caller {
  readonly name: string;
  readonly credentials:
    | { readonly kind: 'none' }
    | { readonly kind: 'token'; readonly token: string }
    /** A token of the administrator that holds the rights and no others. */
    | { readonly kind: 'scopes' }
    /** The login cookie of the administrator, without the CSRF token of a page. */
    | { readonly kind: 'cookie' };
  /** Undefined for those who cannot be identified. */
  readonly rights: readonly Right[] | undefined;
}

/** What becomes of a call. */
export type Verdict = 'allowed' | 403 | 404;

const catalogue = createScopeCatalogue();
const everything = catalogue.names
  .filter((scope) => !metascopes.has(scope) && !isForServicesOnly(scope, catalogue))
  .map((scope) => ({ scope }));

/** Writes a right as a scope. */
export function scopeOf({ scope, filter }: Right): string {
  return filter === undefined ? scope : `${scope}!${filter.kind}=${filter.value}`;
}

/** Every kind of caller there is for an operation on something of the world's owner. */
export function callersOf(declaration: OperationDeclaration, world: World): Caller[] {
  const { owner, other, team, otherTeam, server, service } = world;
  const needed = typeof declaration.scopes === 'string' ? [] : declaration.scopes;
  const all = new Set(everything.map(({ scope }) => scope));
  const own = (name: string): Right[] =>
    selfScopes.map((scope) => ({ scope, filter: { kind: 'user', value: name } }));
  const filters = [
    { kind: 'user', value: owner.name },
    { kind: 'user', value: other.name },
    { kind: 'group', value: team },
    { kind: 'group', value: otherTeam },
    { kind: 'server', value: `${owner.name}/${server}` },
    { kind: 'server', value: `${owner.name}/` },
    { kind: 'server', value: `${other.name}/${server}` },
    { kind: 'service', value: service },
    { kind: 'service', value: 'another' },
  ] as const;
  // Who shares a server must be allowed to know with whom.
  const alongside = declaration.id === 'shareServer' ? [{ scope: 'read:users:name' }] : [];
  const withScopes = (rights: readonly Right[]): Caller => ({
    name: `a token with ${rights.map(scopeOf).join(' ') || 'no scope'}`,
    credentials: { kind: 'scopes' },
    rights,
  });
  const withToken = (name: string, token: string, rights: Caller['rights']): Caller => ({
    name,
    credentials: { kind: 'token', token },
    rights,
  });
  return [
    { name: 'nobody', credentials: { kind: 'none' }, rights: undefined },
    withToken('an unknown token', 'no-such-token', undefined),
    withToken('a revoked token', world.revokedToken, undefined),
    withToken('another user', other.token, own(other.name)),
    withToken('the user', owner.token, own(owner.name)),
    withToken('an administrator', world.adminToken, everything),
    withToken('a service of administrators', world.adminServiceToken, everything),
    withToken('a service without rights', world.plainServiceToken, []),
    withToken('a gateway', world.gatewayToken, [{ scope: 'gateway' }]),
    { name: 'a page of another site', credentials: { kind: 'cookie' }, rights: everything },
    withScopes([]),
    {
      ...withScopes(everything.filter(({ scope }) => !bringsAny(scope, needed))),
      name: 'a token with every scope but those needed',
    },
    ...needed
      .filter((scope) => all.has(scope))
      .flatMap((scope) => [
        withScopes([{ scope }, ...alongside]),
        ...filters.map((filter) => withScopes([{ scope, filter }, ...alongside])),
      ]),
  ];
}

/** What must become of a call on something of the owner, by the declaration alone. */
export function verdictOf(
  declaration: OperationDeclaration,
  caller: Caller,
  world: World,
): Verdict {
  const verdict = verdictByScopes(declaration, caller, world);
  // None of these callers is the server itself.
  return declaration.needsServerToken === true && verdict === 'allowed' ? 403 : verdict;
}

function verdictByScopes(
  declaration: OperationDeclaration,
  { rights, credentials }: Caller,
  world: World,
): Verdict {
  const { scopes, target = 'hub', method } = declaration;
  if (credentials.kind === 'cookie' && method !== 'GET') return 403;
  if (scopes === 'public') return 'allowed';
  if (rights === undefined) return 403;
  if (scopes === 'authenticated') return 'allowed';
  const held = rights.filter((right) =>
    reachOf(right).some((scope) => (scopes as readonly string[]).includes(scope)),
  );
  if (held.length === 0) return 403;
  if (held.some(({ filter }) => filter === undefined)) return 'allowed';
  const matches = (target: keyof typeof filtersThatReach) =>
    held.some(({ filter }) => filter !== undefined && filtersThatReach[target](world, filter));
  const outside = declaration.outsideFilter === 'forbidden' ? 403 : 404;
  switch (target) {
    case 'hub':
      return 403;
    case 'users':
      return held.some(({ filter }) => filter?.kind === 'user' || filter?.kind === 'group')
        ? 'allowed'
        : 403;
    case 'groups':
      return held.some(({ filter }) => filter?.kind === 'group') ? 'allowed' : 403;
    case 'services':
      return held.some(({ filter }) => filter?.kind === 'service') ? 'allowed' : 403;
    case 'user':
    case 'group':
    case 'service':
      return matches(target) ? 'allowed' : outside;
    case 'server':
      return matches(declaration.path.includes('{server}') ? 'namedServer' : 'defaultServer')
        ? 'allowed'
        : outside;
  }
}

type Filter = NonNullable<Right['filter']>;

const reachesOwner = ({ owner, team }: World, { kind, value }: Filter) =>
  (kind === 'user' && value === owner.name) || (kind === 'group' && value === team);

/** Which filters reach what belongs to the owner. */
const filtersThatReach = {
  user: reachesOwner,
  defaultServer: (world: World, filter: Filter) =>
    reachesOwner(world, filter) ||
    (filter.kind === 'server' && filter.value === `${world.owner.name}/`),
  namedServer: (world: World, filter: Filter) =>
    reachesOwner(world, filter) ||
    (filter.kind === 'server' && filter.value === `${world.owner.name}/${world.server}`),
  group: ({ team }: World, { kind, value }: Filter) => kind === 'group' && value === team,
  service: ({ service }: World, { kind, value }: Filter) => kind === 'service' && value === service,
} as const;

/** The scopes that a right stands for; reading a user is nothing that a server can stand for. */
function reachOf({ scope, filter }: Right): readonly string[] {
  const members = catalogue.withSubscopes(scope) ?? [];
  return filter?.kind === 'server'
    ? members.filter((member) => !/^read:users(?::|$)/.test(member))
    : members;
}

function bringsAny(scope: string, needed: readonly string[]): boolean {
  return reachOf({ scope }).some((member) => needed.includes(member));
}
