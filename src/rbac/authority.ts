import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { HubDatabase } from '../store/database.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { UserStore } from '../users/user-store.ts';
import { resolveScopes } from './expand-scopes.ts';
import { intersectScopes } from './intersect-scopes.ts';
import { createMembership, emptyMembership, type Membership } from './membership.ts';
import type { OAuthClientIdentity, Owner } from './owner.ts';
import type { RoleHolder } from './role.ts';
import type { RoleStore } from './role-store.ts';
import { quoteScope, type ScopeSet } from './scope.ts';
import type { ScopeCatalogue } from './scope-definitions.ts';

/** Entries of each cache; beyond that the least used are worked out again. */
const cacheSize = 10_000;

/** What of a token decides what it allows. */
export interface TokenGrant {
  readonly owner: Owner;
  /** As granted, before expansion. */
  readonly scopes: readonly string[];
  readonly client?: OAuthClientIdentity | undefined;
}

/** Answers who may do what, now. */
export interface Authority {
  /** Everything an owner may do through all roles; nothing for an owner that does not exist. */
  scopesOfOwner(owner: Owner): Promise<ScopeSet>;
  /** What a token allows: its own scopes, as far as its owner still holds them. */
  effectiveScopes(token: TokenGrant): Promise<ScopeSet>;
  membership(): Promise<Membership>;
  readonly catalogue: ScopeCatalogue;
}

/**
 * Creates the authority. Answers are kept in memory until the database announces a change; announce
 * one as well when `services` tells something new.
 */
export function createAuthority({
  catalogue,
  users,
  groups,
  roles,
  services,
  database,
  log,
}: {
  readonly catalogue: ScopeCatalogue;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly groups: Pick<GroupStore, 'groupNamesOf' | 'memberships'>;
  readonly roles: Pick<RoleStore, 'heldBy'>;
  readonly services: () => readonly { readonly name: string; readonly admin: boolean }[];
  readonly database: Pick<HubDatabase, 'onChange'>;
  readonly log: Logger;
}): Authority {
  // Promises are kept, not their results: a change removes the promise as well, so an answer that
  // was begun before a change is never found after it.
  const userScopes = new LRUCache<string, Promise<ScopeSet>>({ max: cacheSize });
  const serviceScopes = new LRUCache<string, Promise<ScopeSet>>({ max: cacheSize });
  const tokenScopes = new LRUCache<string, Promise<ScopeSet>>({ max: cacheSize });
  const memberships = new LRUCache<'current', Promise<Membership>>({ max: 1 });

  database.onChange((subject) => {
    // What somebody may do hangs on users, groups and roles, never on a login or another token.
    if (subject !== undefined && subject.kind !== 'user_added') return;
    for (const cache of [userScopes, serviceScopes, tokenScopes, memberships]) cache.clear();
  });

  const membership = () =>
    remember(memberships, 'current', async () => createMembership(await groups.memberships()));

  const holderOf = async ({ kind, name }: Owner): Promise<RoleHolder | undefined> => {
    if (kind === 'service') {
      const service = services().find((service) => service.name === name);
      return service && { kind, name, isAdmin: service.admin };
    }
    const user = await users.findByName(name);
    if (user === undefined) return undefined;
    const groupNames = await groups.groupNamesOf(user.name);
    // The stored name, not the one that was asked for: lookup may normalise it.
    return { kind, name: user.name, isAdmin: user.isAdmin, groupNames };
  };

  const loadScopes = async (owner: Owner): Promise<ScopeSet> => {
    const holder = await holderOf(owner);
    if (holder === undefined) return new Set();
    const held = await roles.heldBy(holder);
    const { scopes, unresolved } = resolveScopes(
      held.flatMap((role) => role.scopes),
      { catalogue, owner: { kind: owner.kind, name: holder.name } },
    );
    if (unresolved.length > 0) {
      log.debug(
        { owner, scopes: unresolved.map(quoteScope) },
        'scopes mean nothing for this owner',
      );
    }
    return scopes;
  };

  const scopesOfOwner = (owner: Owner) =>
    remember(owner.kind === 'user' ? userScopes : serviceScopes, owner.name, () =>
      loadScopes(owner),
    );

  const loadTokenScopes = async ({ owner, client, scopes }: TokenGrant): Promise<ScopeSet> => {
    const inherited = await scopesOfOwner(owner);
    const granted = resolveScopes(scopes, { catalogue, owner, client, inherited });
    if (granted.unresolved.length > 0) {
      log.debug(
        { owner, clientId: client?.clientId, scopes: granted.unresolved.map(quoteScope) },
        'scopes of a token mean nothing for its owner and client',
      );
    }
    const needsGroups = hasGroupFilter(granted.scopes) || hasGroupFilter(inherited);
    return intersectScopes(
      granted.scopes,
      inherited,
      needsGroups ? await membership() : emptyMembership,
    );
  };

  return {
    catalogue,
    membership,
    scopesOfOwner,

    effectiveScopes(token) {
      const { owner, client, scopes } = token;
      if (scopes.length === 1 && scopes[0] === 'inherit') return scopesOfOwner(owner);
      const key = JSON.stringify([
        owner.kind,
        owner.name,
        client?.service,
        client?.server?.userName,
        client?.server?.serverName,
        scopes,
      ]);
      return remember(tokenScopes, key, () => loadTokenScopes(token));
    },
  };
}

function remember<Key extends string, Value>(
  cache: LRUCache<Key, Promise<Value>>,
  key: Key,
  load: () => Promise<Value>,
): Promise<Value> {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const loading = load();
  cache.set(key, loading);
  loading.catch(() => {
    // A failure is not an answer; the caller gets it, the next one asks again.
    if (cache.peek(key) === loading) cache.delete(key);
  });
  return loading;
}

function hasGroupFilter(scopes: ScopeSet): boolean {
  for (const scope of scopes) if (scope.includes('!group=')) return true;
  return false;
}
