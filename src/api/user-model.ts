import { checkAccess } from '../rbac/access-check.ts';
import type { Membership } from '../rbac/membership.ts';
import type { ScopeSet } from '../rbac/scope.ts';
import type { ServerModel } from '../servers/server-model.ts';
import type { User } from '../users/user-store.ts';
import type { userModel } from './models.ts';
import type { ModelOf } from './operation.ts';

/** Everything the API can say about a user; the caller's scopes decide what it does say. */
export interface UserDetails {
  readonly user: User;
  readonly groups: readonly string[];
  readonly roles: readonly string[];
  /** Models of the user's servers by name, with their state; the default one has the empty name. */
  readonly servers: Readonly<Record<string, ServerModel>>;
}

type UserModel = ModelOf<typeof userModel>;

/** Which scope, held for the user, opens which fields of the model; as clients of JupyterHub expect. */
const fieldsByScope = {
  'read:users': [
    'kind',
    'name',
    'admin',
    'roles',
    'groups',
    'server',
    'pending',
    'created',
    'last_activity',
  ],
  'read:users:name': ['kind', 'name', 'admin'],
  'read:users:groups': ['kind', 'name', 'groups'],
  'read:users:activity': ['kind', 'name', 'last_activity'],
  'read:roles:users': ['kind', 'name', 'admin', 'roles'],
  'read:servers': ['kind', 'name', 'server', 'servers', 'pending'],
} as const;

/** The scopes any of which shows something of a user. */
export const userReadScopes: readonly string[] = Object.keys(fieldsByScope);

/** The part of a user's model that these scopes may see; empty when they may see nothing. */
export function presentUser(
  details: UserDetails,
  scopes: ScopeSet,
  membership: Membership,
): UserModel {
  const { user, groups, roles, servers } = details;
  const defaultServer = servers[''];
  const full: Required<UserModel> = {
    kind: 'user',
    name: user.name,
    admin: user.isAdmin,
    groups,
    roles,
    created: user.createdAt.toISOString(),
    last_activity: user.lastActivityAt?.toISOString() ?? null,
    server: defaultServer?.ready === true ? defaultServer.url : null,
    pending: defaultServer?.pending ?? null,
    servers: withVisibleState(details, scopes, membership),
  };
  const resource = { kind: 'user', name: user.name } as const;
  const visible = new Set<string>();
  for (const [scope, fields] of Object.entries(fieldsByScope)) {
    if (checkAccess(scopes, scope, resource, membership) !== 'granted') continue;
    for (const field of fields) visible.add(field);
  }
  const shown = Object.entries(full).filter(([field]) => visible.has(field));
  return Object.fromEntries(shown) as unknown as UserModel;
}

/** The models of the servers; what their spawner keeps is only for `admin:server_state`. */
function withVisibleState(
  { user, servers }: UserDetails,
  scopes: ScopeSet,
  membership: Membership,
): Record<string, ServerModel> {
  const shown = Object.entries(servers).map(([serverName, server]) => {
    const resource = { kind: 'server', userName: user.name, serverName } as const;
    const access = checkAccess(scopes, 'admin:server_state', resource, membership);
    const { state, ...withoutState } = server;
    return [serverName, access === 'granted' ? server : withoutState] as const;
  });
  return Object.fromEntries(shown);
}
