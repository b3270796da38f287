import { checkAccess } from '../rbac/access-check.ts';
import type { Membership } from '../rbac/membership.ts';
import type { ScopeSet } from '../rbac/scope.ts';
import type { User } from '../users/user-store.ts';

/** Everything the API can say about a user; the caller's scopes decide what it does say. */
export interface UserDetails {
  readonly user: User;
  readonly groups: readonly string[];
  readonly roles: readonly string[];
  /** Models of the user's servers by name; the default server has the empty name. */
  readonly servers: Readonly<Record<string, ServerModelLike>>;
}

interface ServerModelLike {
  readonly ready: boolean;
  readonly stopped: boolean;
  readonly pending: string | null;
  readonly url: string;
}

/** Which scope, held for the user, opens which fields of the model. */
const fieldsByScope = {
  'read:users': ['kind', 'name', 'admin', 'groups', 'created', 'last_activity'],
  'read:users:name': ['kind', 'name'],
  'read:users:groups': ['kind', 'name', 'groups'],
  'read:users:activity': ['kind', 'name', 'last_activity'],
  'read:roles:users': ['kind', 'name', 'roles'],
  'read:servers': ['kind', 'name', 'server', 'servers', 'pending'],
} as const;

/** The scopes any of which shows something of a user. */
export const userReadScopes: readonly string[] = Object.keys(fieldsByScope);

/** The part of a user's model that these scopes may see; empty when they may see nothing. */
export function presentUser(
  details: UserDetails,
  scopes: ScopeSet,
  membership: Membership,
): Record<string, unknown> {
  const { user, groups, roles, servers } = details;
  const defaultServer = servers[''];
  const full: Record<string, unknown> = {
    kind: 'user',
    name: user.name,
    admin: user.isAdmin,
    groups,
    roles,
    created: user.createdAt.toISOString(),
    last_activity: user.lastActivityAt?.toISOString() ?? null,
    server: defaultServer?.ready === true ? defaultServer.url : null,
    pending: defaultServer?.pending ?? null,
    servers,
  };
  const resource = { kind: 'user', name: user.name } as const;
  const visible = new Set<string>();
  for (const [scope, fields] of Object.entries(fieldsByScope)) {
    if (checkAccess(scopes, scope, resource, membership) !== 'granted') continue;
    for (const field of fields) visible.add(field);
  }
  return Object.fromEntries(Object.entries(full).filter(([field]) => visible.has(field)));
}
