import type { Logger } from 'pino';
import {
  type ChangeSource,
  createChangeAwareCache,
  watchChanges,
} from '../../platform/store/change-aware-cache.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { UserStore } from '../users/user-store.ts';
import { hasGroupFilter } from './access-check.ts';
import { intersectScopes } from './intersect-scopes.ts';
import { createMembership, emptyMembership, type Membership } from './membership.ts';
import type { OAuthClientIdentity, Owner } from './owner.ts';
import type { RoleHolder } from './role.ts';
import type { RoleStore } from './role-store.ts';
import { quoteScope, resolveScopes, type ScopeSet } from './scope.ts';
import { isForServicesOnly, type ScopeCatalogue } from './scope-definitions.ts';

/** Entries of each cache; beyond that the least used are worked out again. */
const cacheSize = 10_000;

/** What of a token decides what it allows. */
export interface TokenGrant {
  readonly owner: Owner;
  /** As granted, before expansion. */
  readonly scopes: readonly string[];
  readonly client?: OAuthClientIdentity | undefined;
}

/**
 * The policy information of every check: which scopes an owner or a token holds now, roles, groups,
 * shares and grants worked in. Whether scopes allow something is for `checkAccess` to say.
 */
export interface Authorizer {
  /** Everything an owner may do through all roles and shares; nothing for one that does not exist or is suspended. */
  scopesOfOwner(owner: Owner): Promise<ScopeSet>;
  /** What a token allows: its own scopes, as far as its owner still holds them. */
  effectiveScopes(token: TokenGrant): Promise<ScopeSet>;
  membership(): Promise<Membership>;
  /** The membership as far as it can matter to these scopes: none when no scope names a group. */
  membershipFor(grantedScopes: ScopeSet): Promise<Membership>;
  /** Groups of a user by name; none for a user that does not exist. */
  groupNamesOf(userName: string): Promise<readonly string[]>;
  readonly catalogue: ScopeCatalogue;
}

/**
 * Answers are kept in memory, for a minute at most, until the database announces a change; announce one
 * as well when `services` tells something new.
 */
export function createAuthorizer({
  catalogue,
  users,
  groups,
  roles,
  shares,
  services,
  database,
  log,
}: {
  readonly catalogue: ScopeCatalogue;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly groups: Pick<GroupStore, 'groupNamesOf' | 'memberships'>;
  readonly roles: Pick<RoleStore, 'heldBy'>;
  readonly shares: {
    /** Scopes that others share with a user, also by groups. */
    scopesGivenTo(userName: string): Promise<readonly string[]>;
  };
  readonly services: () => readonly { readonly name: string; readonly admin: boolean }[];
  readonly database: ChangeSource;
  readonly log: Logger;
}): Authorizer {
  const changes = watchChanges(database);
  // What an owner may do depends on users, groups, roles and shares, never on a login or another token.
  const createCache = <Value extends {}, Miss extends undefined>(max: number) =>
    createChangeAwareCache<Value, Miss>({ changes, max, invalidatedBy: { newUsers: true } });
  const userHolders = createCache<Extract<RoleHolder, { kind: 'user' }>, undefined>(cacheSize);
  const ownerScopes = {
    user: createCache<ScopeSet, never>(cacheSize),
    service: createCache<ScopeSet, never>(cacheSize),
  };
  const tokenScopes = createCache<ScopeSet, never>(cacheSize);
  const memberships = createCache<Membership, never>(1);

  const membership = () =>
    memberships.getOrLoad('current', async () => createMembership(await groups.memberships()));

  const noMembership = Promise.resolve(emptyMembership);
  const membershipFor = (grantedScopes: ScopeSet) =>
    hasGroupFilter(grantedScopes) ? membership() : noMembership;

  const findUser = (name: string) =>
    userHolders.getOrLoad(name, async () => {
      const user = await users.findByName(name);
      if (user === undefined || user.isSuspended) return undefined;
      const groupNames = await groups.groupNamesOf(user.name);
      // The stored name, not the one that was asked for: lookup may normalise it.
      return { kind: 'user', name: user.name, isAdmin: user.isAdmin, groupNames };
    });

  const findService = (name: string): RoleHolder | undefined => {
    const service = services().find((service) => service.name === name);
    return service && { kind: 'service', name, isAdmin: service.admin };
  };

  const loadScopes = async (owner: Owner): Promise<ScopeSet> => {
    const holder = owner.kind === 'user' ? await findUser(owner.name) : findService(owner.name);
    if (holder === undefined) return new Set();
    const [grantedScopes, shared] = await Promise.all([
      roles.heldBy(holder),
      holder.kind === 'user' ? shares.scopesGivenTo(holder.name) : [],
    ]);
    const { scopes, unresolved } = resolveScopes(
      [...grantedScopes.flatMap((role) => role.scopes), ...shared],
      { catalogue, owner: { kind: owner.kind, name: holder.name } },
    );
    if (unresolved.length > 0) {
      log.debug(
        { owner, scopes: unresolved.map(quoteScope) },
        'scopes mean nothing for this owner',
      );
    }
    if (owner.kind === 'service') return scopes;
    return new Set([...scopes].filter((scope) => !isForServicesOnly(scope, catalogue)));
  };

  const scopesOfOwner = (owner: Owner) =>
    ownerScopes[owner.kind].getOrLoad(owner.name, () => loadScopes(owner));

  const loadTokenScopes = async ({ owner, client, scopes }: TokenGrant): Promise<ScopeSet> => {
    const inherited = await scopesOfOwner(owner);
    const granted = resolveScopes(scopes, { catalogue, owner, client, inherited });
    if (granted.unresolved.length > 0) {
      log.debug(
        { owner, clientId: client?.clientId, scopes: granted.unresolved.map(quoteScope) },
        'scopes of a token mean nothing for its owner and client',
      );
    }
    return intersectScopes(
      granted.scopes,
      inherited,
      hasGroupFilter(granted.scopes) || hasGroupFilter(inherited)
        ? await membership()
        : emptyMembership,
    );
  };

  return {
    catalogue,
    membership,
    membershipFor,
    scopesOfOwner,
    groupNamesOf: async (userName) => (await findUser(userName))?.groupNames ?? [],

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
      return tokenScopes.getOrLoad(key, () => loadTokenScopes(token));
    },
  };
}
