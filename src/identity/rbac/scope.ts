import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { OAuthClientIdentity, Owner } from './owner.ts';
import { metascopes, type ScopeCatalogue, selfScopes } from './scope-definitions.ts';

/** Expanded scope strings such as `read:users:name!user=alice`, in the spelling `formatScope` gives. */
export type ScopeSet = ReadonlySet<string>;

export type ScopeFilterKind = 'user' | 'group' | 'server' | 'service';

/** What a scope is restricted to. Without a value it means the holder: `!user`, `!server`, `!service`. */
export interface ScopeFilter {
  readonly kind: ScopeFilterKind;
  /** Name of the user, group or service; `user/server` for a server, with nothing after the slash for the default one. */
  readonly value?: string;
}

export interface Scope {
  readonly name: string;
  readonly filter?: ScopeFilter;
}

/** Outcome of reading a scope string. */
export type ScopeReading =
  | { readonly scope: Scope; readonly problem?: never }
  | { readonly scope?: never; readonly problem: Text };

const canonicalAccessScope = 'access:servers';
const otherAccessScope = 'access:users:servers';
const maxQuoteLength = 100;

/** Gives the one spelling of a scope name under which it is held and checked. */
export function canonicalScopeName(name: string): string {
  return name === otherAccessScope ? canonicalAccessScope : name;
}

/**
 * Reads a scope string. The name ends at the first `!`, the filter's kind at the first `=`; what
 * follows is the value, whatever characters it holds, so no user name can smuggle in a second filter.
 */
export function readScope(written: string): ScopeReading {
  const filterStart = written.indexOf('!');
  const name = canonicalScopeName(filterStart === -1 ? written : written.slice(0, filterStart));
  if (name === '') return { problem: text`a scope has no name` };
  if (filterStart === -1) return { scope: { name } };

  const valueStart = written.indexOf('=', filterStart);
  const kind = written.slice(filterStart + 1, valueStart === -1 ? undefined : valueStart);
  if (!isFilterKind(kind)) {
    return {
      problem: text`the scope ${quoteScope(written)} has an unknown filter; known are user, group, server and service`,
    };
  }
  if (valueStart === -1) {
    if (kind === 'group')
      return { problem: text`the scope ${quoteScope(written)} does not name its group` };
    return { scope: { name, filter: { kind } } };
  }
  const value = written.slice(valueStart + 1);
  if (value === '') return { problem: text`the scope ${quoteScope(written)} has an empty filter` };
  // User names hold no slash: one at the start or none at all means that the user is missing.
  if (kind === 'server' && value.lastIndexOf('/') <= 0) {
    return {
      problem: text`the scope ${quoteScope(written)} must name its server as user/server, or as user/ for the default server`,
    };
  }
  return { scope: { name, filter: { kind, value } } };
}

/** Parses a scope string; throws `bad_request` for an unknown or malformed filter. */
export function parseScope(written: string): Scope {
  const { scope, problem } = readScope(written);
  if (scope === undefined) throw new HubError('bad_request', problem);
  return scope;
}

/** Writes a scope in its canonical spelling. */
export function formatScope({ name, filter }: Scope): string {
  if (filter === undefined) return name;
  return filter.value === undefined
    ? `${name}!${filter.kind}`
    : `${name}!${filter.kind}=${filter.value}`;
}

/** Splits the value of a server filter. Server names hold no slash, so the last one separates. */
export function splitServerValue(value: string): { userName: string; serverName: string } {
  const slash = value.lastIndexOf('/');
  return { userName: value.slice(0, slash), serverName: value.slice(slash + 1) };
}

/**
 * Lists scopes as the user model shows them: sorted, and access to servers in both spellings
 * (`access:servers` and `access:users:servers`), for clients of either.
 */
export function presentScopes(scopes: ScopeSet | readonly string[]): readonly string[] {
  const known = presentedScopes.get(scopes);
  if (known !== undefined) return known;
  const presented = new Set<string>();
  for (const scope of scopes) {
    presented.add(scope);
    if (scope === canonicalAccessScope || scope.startsWith(`${canonicalAccessScope}!`)) {
      presented.add(otherAccessScope + scope.slice(canonicalAccessScope.length));
    }
  }
  const sorted = [...presented].sort();
  presentedScopes.set(scopes, sorted);
  return sorted;
}

/** Sets of scopes are remembered as they are, so each is sorted once. */
const presentedScopes = new WeakMap<ScopeSet | readonly string[], readonly string[]>();

/** Quotes a scope for a message, cut to a bounded length. */
export function quoteScope(text: string): string {
  return JSON.stringify(text.length > maxQuoteLength ? `${text.slice(0, maxQuoteLength)}…` : text);
}

function isFilterKind(kind: string): kind is ScopeFilterKind {
  return kind === 'user' || kind === 'group' || kind === 'server' || kind === 'service';
}

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
 * Expands with a stand-in for any user who may come to hold the scopes, so that self references can be compared:
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
