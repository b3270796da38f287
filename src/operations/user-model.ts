import type { UserInfo } from '../identity/users/user-info.ts';
import type { User } from '../identity/users/user-store.ts';
import type { ServerModel } from '../workloads/servers/server-model.ts';
import type { userModel } from './models.ts';
import type { ModelOf, OperationRequest } from './operation.ts';

/** Everything the API can say about a user; the caller's scopes decide what it does say. */
export interface UserDetails {
  readonly user: User;
  readonly groups: readonly string[];
  readonly roles: readonly string[];
  /** When the account was made, as ISO 8601. */
  readonly created: string;
  readonly info: UserInfo;
  /** Models of the user's servers by name, with their state; the default one has the empty name. */
  readonly servers: Readonly<Record<string, ServerModel>>;
}

type UserModel = ModelOf<typeof userModel>;
type May = OperationRequest<never>['may'];
type UserReadScope = keyof typeof fieldsByScope;

/** Which scope, held for the user, opens which fields of the model; as clients of JupyterHub expect. */
const fieldsByScope = {
  'read:users': [
    'kind',
    'name',
    'admin',
    'suspended',
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
  'read:users:info': ['kind', 'name', 'user_info'],
  'read:roles:users': ['kind', 'name', 'admin', 'roles'],
  'read:servers': ['kind', 'name', 'server', 'servers', 'pending'],
} as const;

/** The scopes any of which shows something of a user. */
export const userReadScopes = Object.keys(fieldsByScope) as readonly UserReadScope[];

/** The state of a login is read for one user alone, by its own scope. */
type Field = Exclude<keyof UserModel, 'auth_state'>;

/** Where the value of each field comes from. */
const readField = {
  kind: () => 'user',
  name: ({ user }) => user.name,
  admin: ({ user }) => user.isAdmin,
  suspended: ({ user }) => user.isSuspended,
  groups: ({ groups }) => groups,
  roles: ({ roles }) => roles,
  created: ({ created }) => created,
  last_activity: ({ user }) => user.lastActivityAt?.toISOString() ?? null,
  server: ({ servers: { '': server } }) => (server?.ready === true ? server.url : null),
  pending: ({ servers }) => servers['']?.pending ?? null,
  servers: withVisibleState,
  user_info: ({ info }) => ({
    display_name: info.displayName ?? null,
    email: info.email ?? null,
    email_verified: info.isEmailVerified,
    avatar_url: info.pictureUrl ?? null,
    authenticator: info.authenticator ?? null,
  }),
} as const satisfies { [Name in Field]: (details: UserDetails, may: May) => UserModel[Name] };

const fieldsInOrder = Object.keys(readField) as Field[];
/** By the scopes that open them, one bit each. */
const fieldsByGrant = new Map<number, readonly Field[]>();

/**
 * The part of a user's model that the caller may see; empty when that is nothing. Some scopes may be
 * taken as held, where it is clear already that the caller may know what they open.
 */
export function presentUser(
  details: UserDetails,
  may: May,
  taken: readonly UserReadScope[] = [],
): UserModel {
  const resource = { kind: 'user', name: details.user.name } as const;
  let granted = 0;
  let bit = 1;
  for (const scope of userReadScopes) {
    if (taken.includes(scope) || may(scope, resource)) granted |= bit;
    bit <<= 1;
  }
  const model: Partial<Record<Field, unknown>> = {};
  for (const field of fieldsOpenedBy(granted)) model[field] = readField[field](details, may);
  if (model.servers === undefined) {
    const servers = serversReadAlone(details, may);
    if (servers !== undefined) {
      return { kind: 'user', name: details.user.name, ...model, servers } as UserModel;
    }
  }
  return model as UserModel;
}

/** The servers that the caller may read though not those of the user as a whole; undefined: none. */
function serversReadAlone(
  details: UserDetails,
  may: May,
): Readonly<Record<string, ServerModel>> | undefined {
  const userName = details.user.name;
  const readable = Object.entries(details.servers).filter(([serverName]) =>
    may('read:servers', { kind: 'server', userName, serverName }),
  );
  if (readable.length === 0) return undefined;
  return withVisibleState({ ...details, servers: Object.fromEntries(readable) }, may);
}

function fieldsOpenedBy(granted: number): readonly Field[] {
  const known = fieldsByGrant.get(granted);
  if (known !== undefined) return known;
  const scopes = userReadScopes.filter((_, bit) => (granted & (1 << bit)) !== 0);
  const opened = new Set<Field>(scopes.flatMap((scope) => fieldsByScope[scope]));
  const fields = fieldsInOrder.filter((field) => opened.has(field));
  fieldsByGrant.set(granted, fields);
  return fields;
}

/** The models of the servers; what their spawner keeps is only for `admin:server_state`. */
function withVisibleState({ user, servers }: UserDetails, may: May): Record<string, ServerModel> {
  const listed = Object.entries(servers);
  if (listed.length === 0) return {};
  const shown = listed.map(([serverName, server]) => {
    const resource = { kind: 'server', userName: user.name, serverName } as const;
    const { state, ...withoutState } = server;
    return [serverName, may('admin:server_state', resource) ? server : withoutState] as const;
  });
  return Object.fromEntries(shown);
}
