import type { RoleStore } from '../identity/rbac/role-store.ts';
import type { GroupStore } from '../identity/users/group-store.ts';
import { noInfo, type UserInfo } from '../identity/users/user-info.ts';
import type { UserInfoStore } from '../identity/users/user-info-store.ts';
import type { User } from '../identity/users/user-store.ts';
import { createBatchLoader } from '../platform/concurrency/answer-cache.ts';
import { type ChangeWatch, createChangeAwareCache } from '../platform/store/change-aware-cache.ts';
import type { userModel } from './models.ts';
import type { ModelOf, OperationRequest } from './operation.ts';
import type { ServerModel } from './server-model.ts';

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

/** Collects what the API tells about users from the stores that know it. */
export interface UserDirectory {
  detailsOf(user: User, options?: Pick<DetailOptions, 'withStoppedServers'>): Promise<UserDetails>;
  /** The details of many, in their order: a fixed number of queries, however many there are. */
  detailsOfAll(users: readonly User[], options?: DetailOptions): Promise<UserDetails[]>;
}

interface DetailOptions {
  /** Whether servers that are stopped are listed too; they are not by default. */
  readonly withStoppedServers: boolean;
  /** Whether the options of the servers are told; those of one user are by default, those of many are not. */
  readonly withUserOptions?: boolean;
}

/** What changes by none but announced changes, so that it can be remembered. */
type Holdings = Pick<UserDetails, 'groups' | 'roles' | 'created'>;

const cachedUsers = 10_000;

export function createUserDirectory(deps: {
  readonly groups: Pick<GroupStore, 'groupNamesByUser'>;
  readonly roles: Pick<RoleStore, 'namesGrantedTo'>;
  readonly userInfo: UserInfoStore;
  /** Models of servers by the id of their user. */
  readonly serverModelsByUser: (
    userIds: readonly string[],
    options: { readonly withStopped: boolean; readonly withUserOptions: boolean },
  ) => Promise<ReadonlyMap<string, UserDetails['servers']>>;
  readonly changes: ChangeWatch;
}): UserDirectory {
  const { groups, roles, userInfo, changes } = deps;
  const cached = createChangeAwareCache<Holdings>({ changes, max: cachedUsers });
  // With all that implicit roles and assignments depend on: the user may have been read before a change.
  const keyOf = ({ id, isAdmin, name }: User) => `${id} ${isAdmin} ${name}`;

  const allServersOf = createBatchLoader((userIds: readonly string[]) =>
    deps.serverModelsByUser(userIds, { withStopped: true, withUserOptions: true }),
  );
  const activeServersOf = createBatchLoader((userIds: readonly string[]) =>
    deps.serverModelsByUser(userIds, { withStopped: false, withUserOptions: true }),
  );

  async function holdingsOf(users: readonly User[]): Promise<ReadonlyMap<User, Holdings>> {
    const found = new Map<User, Holdings>();
    const unknown: User[] = [];
    for (const user of users) {
      const holdings = cached.get(keyOf(user));
      if (holdings === undefined) unknown.push(user);
      else found.set(user, holdings);
    }
    if (unknown.length > 0) await load(unknown, found);
    return found;
  }

  async function load(users: readonly User[], into: Map<User, Holdings>): Promise<void> {
    const beginning = cached.begin();
    const groupNames = await groups.groupNamesByUser(users.map(({ id }) => id));
    const roleNames = await roles.namesGrantedTo(
      // The roles of their groups stand with the groups, as clients of JupyterHub expect.
      users.map(({ name, isAdmin }) => ({ kind: 'user', name, isAdmin, groupNames: [] })),
    );
    for (const user of users) {
      const holdings = toHoldings(
        user,
        groupNames.get(user.id) ?? [],
        roleNames.get(user.name) ?? [],
      );
      cached.put(keyOf(user), holdings, beginning);
      into.set(user, holdings);
    }
  }

  async function loadDetails(
    users: readonly User[],
    { withStoppedServers, withUserOptions = false }: DetailOptions = { withStoppedServers: false },
  ): Promise<UserDetails[]> {
    const ids = users.map(({ id }) => id);
    const [holdings, infos, servers] = await Promise.all([
      holdingsOf(users),
      userInfo.ofAll(ids),
      deps.serverModelsByUser(ids, { withStopped: withStoppedServers, withUserOptions }),
    ]);
    return users.map((user) =>
      detailsFrom(user, holdings, infos.get(user.id) ?? noInfo, servers.get(user.id)),
    );
  }

  function detailsFrom(
    user: User,
    holdings: ReadonlyMap<User, Holdings>,
    info: UserInfo,
    servers: UserDetails['servers'] = {},
  ): UserDetails {
    const { groups, roles, created } = holdings.get(user) ?? toHoldings(user, [], []);
    return { user, groups, roles, created, info, servers };
  }

  return {
    async detailsOf(user, { withStoppedServers } = { withStoppedServers: false }) {
      const serversOf = withStoppedServers ? allServersOf : activeServersOf;
      const [holdings, info, servers] = await Promise.all([
        holdingsOf([user]),
        userInfo.of(user.id),
        serversOf(user.id),
      ]);
      return detailsFrom(user, holdings, info, servers);
    },
    detailsOfAll: loadDetails,
  };
}

function toHoldings(
  { createdAt }: User,
  groups: readonly string[],
  roles: readonly string[],
): Holdings {
  return { groups, roles, created: createdAt.toISOString() };
}
