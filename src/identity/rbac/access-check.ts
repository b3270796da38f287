import { HubError } from '../../platform/errors.ts';
import type { AccessTarget } from '../../platform/protocol/client-id.ts';
import { listOf, text } from '../../platform/texts/text.ts';
import type { User } from '../users/user-store.ts';
import type { Membership } from './membership.ts';
import type { Owner } from './owner.ts';
import {
  canonicalScopeName,
  parseScope,
  type Scope,
  type ScopeSet,
  splitServerValue,
} from './scope.ts';
import type { BuiltInScope } from './scope-definitions.ts';
import { scopeLabels } from './scope-labels.ts';

/** Who makes a request, and what they may do in it. */
export interface Caller {
  readonly owner: Owner;
  readonly scopes: ScopeSet;
  /** The owner, when it is a user. */
  readonly user?: User;
  /** Whether it is a command, run by whoever may read the configuration file; it stands for no service that stays. */
  readonly isCommand?: true;
  /** The token that was presented; absent for a browser's login. */
  readonly accessToken?: CallerToken;
  /** Browser session behind the login or the token. */
  readonly sessionId?: string;
}

/** What a request may know about the token it came with; never the token itself. */
export interface CallerToken {
  readonly id: string;
  readonly clientId?: string;
  readonly sessionId?: string;
  readonly note: string;
  /** As they were granted to an OpenID Connect client, with the claims that it may learn. */
  readonly grantedScopes?: readonly string[];
  readonly expiresAt?: Date;
  /** The user's server whose own token this is. */
  readonly server?: { readonly userName: string; readonly serverName: string };
}

/** Whether the request came with a token; otherwise with the login cookie of a browser. */
export function presentsToken({ owner, accessToken }: Caller): boolean {
  // The token of a service stands in the configuration and has no record of its own.
  return owner.kind === 'service' || accessToken !== undefined;
}

/** What a request wants to touch. */
export type Resource =
  | { readonly kind: 'user'; readonly name: string }
  | { readonly kind: 'group'; readonly name: string }
  | AccessTarget;

/**
 * Outcome of a check. `filtered`: the scope is held, but not for this resource; answer as if it did
 * not exist (404). `missing`: the scope is not held at all (403).
 */
export type Access = 'granted' | 'filtered' | 'missing';

/**
 * Checks whether held scopes allow something. Without a resource only an unfiltered scope will do:
 * `admin:users!group=x` is not the right to create users. `required` may carry a filter instead of
 * a resource, as in `access:services!service=wiki`.
 */
export function checkAccess(
  grantedScopes: ScopeSet,
  required: string,
  resource: Resource | undefined,
  membership: Membership,
): Access {
  if (mayAccess(grantedScopes, required, resource, membership)) return 'granted';
  const [name = ''] = required.split('!');
  const filteredPrefix = `${canonicalScopeName(name)}!`;
  for (const scope of grantedScopes) if (scope.startsWith(filteredPrefix)) return 'filtered';
  return 'missing';
}

/** Whether the outcome of a check is `granted`; quicker where nothing else matters. */
export function mayAccess(
  grantedScopes: ScopeSet,
  required: string,
  resource: Resource | undefined,
  membership: Membership,
): boolean {
  if (grantedScopes.has(required)) return true;
  if (!required.includes('!')) {
    return holds(grantedScopes, canonicalScopeName(required), resource, membership);
  }
  const scope = parseScope(required);
  return holds(grantedScopes, scope.name, resourceOf(scope), membership);
}

/** Whether a scope is held for a server of this user by name. */
export function mayAccessServerOf(
  grantedScopes: ScopeSet,
  name: string,
  userName: string,
): boolean {
  const prefix = `${name}!server=${userName}/`;
  for (const scope of grantedScopes) if (scope.startsWith(prefix)) return true;
  return false;
}

/** Whether a scope is held for a resource, through the hierarchy group → user → server. */
function holds(
  grantedScopes: ScopeSet,
  name: string,
  resource: Resource | undefined,
  membership: Membership,
): boolean {
  if (grantedScopes.has(name)) return true;
  switch (resource?.kind) {
    case undefined:
      return false;
    case 'user':
      return holdsForUser(grantedScopes, name, resource.name, membership);
    case 'server':
      return (
        grantedScopes.has(`${name}!server=${resource.userName}/${resource.serverName}`) ||
        holdsForUser(grantedScopes, name, resource.userName, membership)
      );
    case 'group':
      return grantedScopes.has(`${name}!group=${resource.name}`);
    case 'service':
      return grantedScopes.has(`${name}!service=${resource.name}`);
  }
}

function holdsForUser(
  grantedScopes: ScopeSet,
  name: string,
  userName: string,
  membership: Membership,
): boolean {
  if (grantedScopes.has(`${name}!user=${userName}`)) return true;
  for (const group of membership.groupsOf(userName)) {
    if (grantedScopes.has(`${name}!group=${group}`)) return true;
  }
  return false;
}

/** Whether held scopes include another scope with everything it reaches at this moment. */
export function includesScope(
  grantedScopes: ScopeSet,
  scope: Scope,
  membership: Membership,
): boolean {
  return holds(grantedScopes, scope.name, resourceOf(scope), membership);
}

/** Lists the wanted scopes that reach beyond what the granter holds. Both sets are expanded. */
export function excessScopes(
  granter: ScopeSet,
  wanted: ScopeSet,
  membership: Membership,
): readonly string[] {
  return [...wanted].filter(
    (text) => !granter.has(text) && !includesScope(granter, parseScope(text), membership),
  );
}

/**
 * Whether a granter may give all wanted scopes to another: no one grants more than they hold.
 * Also the test for acting on an account: who may not grant what it holds may not take it over.
 */
export function mayGrant(granter: ScopeSet, wanted: ScopeSet, membership: Membership): boolean {
  return excessScopes(granter, wanted, membership).length === 0;
}

/** What the rows of a list are cut down to. */
export interface ListFilter {
  readonly users: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  /** As `user/server`. */
  readonly servers: ReadonlySet<string>;
  readonly services: ReadonlySet<string>;
}

/** Tells which rows a `list:*` scope shows: all, those of the filters held, or undefined for no right to list. */
export function listFilter(grantedScopes: ScopeSet, name: string): 'all' | ListFilter | undefined {
  if (grantedScopes.has(name)) return 'all';
  const prefix = `${name}!`;
  const values = {
    user: new Set<string>(),
    group: new Set<string>(),
    server: new Set<string>(),
    service: new Set<string>(),
  };
  let isHeld = false;
  for (const text of grantedScopes) {
    if (!text.startsWith(prefix)) continue;
    const { filter } = parseScope(text);
    if (filter?.value === undefined) continue;
    values[filter.kind].add(filter.value);
    isHeld = true;
  }
  if (!isHeld) return undefined;
  return {
    users: values.user,
    groups: values.group,
    servers: values.server,
    services: values.service,
  };
}

/** Names the users that a filtered `list:users` shows: those named, and the members of groups named. */
export function listedUserNames(
  filter: Pick<ListFilter, 'users' | 'groups'>,
  membership: Membership,
): string[] {
  const members = [...filter.groups].flatMap((group) => [...membership.membersOf(group)]);
  return [...new Set([...filter.users, ...members])];
}

/** The users for whom a scope is held. */
export function userNamesFor(
  grantedScopes: ScopeSet,
  name: string,
  membership: Membership,
): 'all' | string[] {
  const filter = listFilter(grantedScopes, name);
  if (filter === 'all') return 'all';
  return filter === undefined ? [] : listedUserNames(filter, membership);
}

function resourceOf({ filter }: Scope): Resource | undefined {
  if (filter?.value === undefined) return undefined;
  return filter.kind === 'server'
    ? { kind: 'server', ...splitServerValue(filter.value) }
    : { kind: filter.kind, name: filter.value };
}

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
  const permissions = anyOf.map((scope) => {
    const words = scopeLabels[scope as BuiltInScope]?.description;
    return words === undefined ? scope : text`“${words}” (${scope})`;
  });
  throw new HubError('forbidden', text`You don’t have the permission for this.`, {
    hint: text`You need the permission ${listOf(permissions, 'disjunction')}.`,
  });
}

/** The refusal of a resource that is not there, or to which the caller has no right. */
export function notReachable(): HubError {
  return new HubError('not_found', text`This doesn’t exist, or you don’t have access to it.`, {
    isRefusal: true,
  });
}

/** Sets of scopes are remembered as they are, so each is searched once. */
const withGroupFilter = new WeakMap<ScopeSet, boolean>();

/** Whether any scope is restricted to a group, so that it matters who is in it. */
export function hasGroupFilter(scopes: ScopeSet): boolean {
  const known = withGroupFilter.get(scopes);
  if (known !== undefined) return known;
  const isFiltered = [...scopes].some((scope) => scope.includes('!group='));
  withGroupFilter.set(scopes, isFiltered);
  return isFiltered;
}
