import type { OAuthClientIdentity, Owner } from './owner.ts';
import { formatScope, readScope, type Scope, type ScopeFilter, type ScopeSet } from './scope.ts';
import { metascopes, type ScopeCatalogue, selfScopes } from './scope-definitions.ts';

/** What self references and metascopes are resolved against. */
export interface ExpansionContext {
  readonly catalogue: ScopeCatalogue;
  readonly owner?: Owner | undefined;
  readonly client?: OAuthClientIdentity | undefined;
  /** What `inherit` stands for: the scopes of the owner, already expanded. */
  readonly inherited?: ScopeSet | undefined;
}

export interface ScopeExpansion {
  readonly scopes: ScopeSet;
  /** Scopes that are unknown, malformed or mean nothing for this owner and client; worth a log line. */
  readonly unresolved: readonly string[];
}

/** Expands scopes into everything they allow, dropping what cannot be resolved. */
export function expandScopes(scopes: Iterable<string>, context: ExpansionContext): ScopeSet {
  return resolveScopes(scopes, context).scopes;
}

/** No name of a user, service or server. */
const anyName = '*';

/**
 * Expands with a stand-in for whoever may come to hold the scopes, so that self references can be compared:
 * who holds the same for everything holds it for the stand-in.
 */
export function expandForAnyHolder(
  scopes: Iterable<string>,
  catalogue: ScopeCatalogue,
  holder?: Owner,
): ScopeSet {
  return expandScopes(scopes, {
    catalogue,
    owner: holder?.kind === 'user' ? holder : { kind: 'user', name: anyName },
    client: {
      clientId: anyName,
      service: anyName,
      server: { userName: anyName, serverName: anyName },
    },
    inherited: new Set(['inherit']),
  });
}

/** Expands scopes into everything they allow, and tells what could not be resolved. */
export function resolveScopes(scopes: Iterable<string>, context: ExpansionContext): ScopeExpansion {
  const expanded = new Set<string>();
  const unresolved: string[] = [];
  for (const text of scopes) {
    const members = membersOf(text, context);
    if (members === undefined) unresolved.push(text);
    else for (const member of members) expanded.add(member);
  }
  return { scopes: expanded, unresolved };
}

function membersOf(text: string, context: ExpansionContext): Iterable<string> | undefined {
  const { scope } = readScope(text);
  if (scope === undefined) return undefined;
  if (metascopes.has(scope.name)) return membersOfMetascope(scope, context);
  const filter = scope.filter && resolveFilter(scope.filter, context);
  if (scope.filter !== undefined && filter === undefined) return undefined;
  return family(scope.name, filter, context.catalogue);
}

function membersOfMetascope(
  scope: Scope,
  { catalogue, owner, inherited }: ExpansionContext,
): Iterable<string> | undefined {
  if (scope.filter !== undefined) return undefined;
  if (scope.name === '(no_scope)') return [];
  if (scope.name === 'inherit') return inherited;
  if (owner?.kind === 'service') return [];
  if (owner === undefined) return undefined;
  const filter = { kind: 'user', value: owner.name } as const;
  return selfScopes.flatMap((name) => family(name, filter, catalogue) ?? []);
}

function family(
  name: string,
  filter: ScopeFilter | undefined,
  catalogue: ScopeCatalogue,
): readonly string[] | undefined {
  const names = catalogue.withSubscopes(name);
  if (names === undefined || filter === undefined) return names;
  return names
    .filter((member) => filter.kind !== 'server' || !isAboutUsers(member))
    .map((member) => formatScope({ name: member, filter }));
}

/** Reading a user is not something a single server can stand for; with a server filter it means nothing. */
function isAboutUsers(name: string): boolean {
  return name === 'read:users' || name.startsWith('read:users:');
}

function resolveFilter(
  filter: ScopeFilter,
  { owner, client }: ExpansionContext,
): ScopeFilter | undefined {
  if (filter.value !== undefined) return filter;
  const value = selfReference(filter.kind, owner, client);
  return value === undefined ? undefined : { kind: filter.kind, value };
}

function selfReference(
  kind: ScopeFilter['kind'],
  owner: Owner | undefined,
  client: OAuthClientIdentity | undefined,
): string | undefined {
  if (kind === 'user') return owner?.kind === 'user' ? owner.name : undefined;
  if (kind === 'service') {
    return client?.service ?? (owner?.kind === 'service' ? owner.name : undefined);
  }
  return kind === 'server' && client?.server !== undefined
    ? `${client.server.userName}/${client.server.serverName}`
    : undefined;
}
