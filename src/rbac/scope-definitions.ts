/** What a scope allows, in the words of the consent page and of the reference documentation. */
export interface ScopeDefinition {
  /** Short, for the consent page: completes "This lets the application…". */
  readonly description: string;
  /** For the reference documentation. */
  readonly help: string;
  /** Scopes that come with this one, each with their own sub-scopes. */
  readonly subscopes: readonly string[];
  /** Whether it means something for a single server, so that a server can be shared with it. */
  readonly ofServers?: true;
  /** Whether users never hold it, whatever roles they have. */
  readonly forServicesOnly?: true;
}

/** A scope of the operator's own services, as `Hub.custom_scopes` defines it. */
export interface CustomScope {
  readonly description: string;
  readonly subscopes: readonly string[];
}

/** Scopes that stand for others, decided by who holds them; they take no filter. */
export const metascopes: ReadonlySet<string> = new Set(['(no_scope)', 'self', 'inherit']);

/** What the metascope `self` stands for, each restricted to the user who holds it. */
export const selfScopes = [
  'read:users',
  'read:users:info',
  'users:shares',
  'read:shares',
  'users:activity',
  'servers',
  'tokens',
  'access:servers',
] as const;

/** Every scope the hub itself checks. Checks, consent texts and documentation all come from here. */
export const scopeDefinitions = {
  '(no_scope)': {
    description: 'See who you are.',
    help: 'Identifies the owner of a request and allows nothing else.',
    subscopes: [],
  },
  self: {
    description: 'Do everything you may do with your own account, servers and tokens.',
    help: "A user's own resources: reading the account, its servers, tokens and activity. For a service it means nothing.",
    subscopes: [],
  },
  inherit: {
    description: 'Do everything you may do.',
    help: 'For tokens: whatever the owner of the token may do at the moment of use.',
    subscopes: [],
  },
  'admin-ui': {
    description: 'Open the administration page.',
    help: 'Opens the administration page. Each action on it needs its own scope as well.',
    subscopes: [],
  },
  'admin:users': {
    description: 'Create, read, change and delete users.',
    help: 'Full control of user accounts. Treat a holder as an administrator.',
    subscopes: ['admin:auth_state', 'users', 'read:users:info', 'read:roles:users', 'delete:users'],
  },
  'admin:auth_state': {
    description: 'Read what login providers told about users.',
    help: 'Reads the login state that an authenticator keeps for a user, such as tokens of the provider.',
    subscopes: [],
  },
  users: {
    description: 'Read and change users.',
    help: 'Lists, reads and changes user accounts, except for creating and deleting them.',
    subscopes: ['read:users', 'list:users', 'users:activity'],
  },
  'delete:users': {
    description: 'Delete users.',
    help: 'Deletes user accounts with their servers and tokens.',
    subscopes: [],
  },
  'list:users': {
    description: 'List users.',
    help: 'Lists user accounts with their names. A filter shortens the list.',
    subscopes: ['read:users:name'],
  },
  'read:users': {
    description: 'Read the name, groups and activity of users.',
    help: 'Reads user accounts: names, roles, group membership, last activity, and whether the default server runs.',
    subscopes: ['read:users:name', 'read:users:groups', 'read:users:activity'],
  },
  'read:users:name': {
    description: 'Read the names of users.',
    help: 'Reads user names, and who is an administrator.',
    subscopes: [],
  },
  'read:users:groups': {
    description: 'Read which groups users belong to.',
    help: 'Reads the group membership of users.',
    subscopes: [],
  },
  'read:users:info': {
    description: 'Read the display names, e-mail addresses and pictures of users.',
    help: 'Reads `user_info`: the display name, e-mail address and picture of users, where they are known.',
    subscopes: [],
  },
  'read:users:activity': {
    description: 'Read when users were last active.',
    help: 'Reads the time of last activity of users and their servers.',
    subscopes: [],
  },
  'users:activity': {
    description: 'Report and read when users were last active.',
    help: 'Moves the time of last activity of users and their servers forward.',
    subscopes: ['read:users:activity'],
  },
  'read:roles': {
    description: 'Read roles and who holds them.',
    help: 'Lists roles with what they allow, and reads the roles of users, services and groups.',
    subscopes: ['read:roles:users', 'read:roles:services', 'read:roles:groups'],
  },
  'read:roles:users': {
    description: 'Read which roles users hold.',
    help: 'Reads the roles of users.',
    subscopes: [],
  },
  'read:roles:services': {
    description: 'Read which roles services hold.',
    help: 'Reads the roles of services.',
    subscopes: [],
  },
  'read:roles:groups': {
    description: 'Read which roles groups hold.',
    help: 'Reads the roles of groups.',
    subscopes: [],
  },
  'admin:roles': {
    description: 'Create, change, delete and assign roles.',
    help: 'Makes, changes and deletes the roles that are not in the configuration file, and gives roles to users, groups and services or takes them away; only roles whose every scope the holder has.',
    subscopes: ['read:roles'],
  },
  'admin:servers': {
    description: "Start, stop and read users' servers, with their internal state.",
    help: "Full control of users' servers, including the state that the spawner keeps.",
    subscopes: ['admin:server_state', 'servers'],
    ofServers: true,
  },
  'admin:server_state': {
    description: 'Read the internal state of servers.',
    help: 'Reads what the spawner keeps to find a running server again.',
    subscopes: [],
    ofServers: true,
  },
  servers: {
    description: 'Start, stop and read servers.',
    help: "Reads, starts, edits, stops and deletes users' servers.",
    subscopes: ['read:servers', 'start:servers', 'delete:servers'],
    ofServers: true,
  },
  'read:servers': {
    description: 'Read the state of servers.',
    help: "Reads users' servers: whether they run, since when, and under which address.",
    subscopes: ['read:users:name'],
    ofServers: true,
  },
  'start:servers': {
    description: 'Start servers.',
    help: "Starts users' servers and edits their options.",
    subscopes: [],
    ofServers: true,
  },
  'delete:servers': {
    description: 'Stop and delete servers.',
    help: "Stops users' servers and deletes named ones.",
    subscopes: [],
    ofServers: true,
  },
  tokens: {
    description: 'Create, read and revoke access tokens.',
    help: 'Creates, reads and revokes access tokens. No one can put more into a token than its owner may do.',
    subscopes: ['read:tokens'],
  },
  'read:tokens': {
    description: 'Read which access tokens exist.',
    help: 'Reads notes, scopes and times of access tokens, never the tokens themselves.',
    subscopes: [],
  },
  'admin:groups': {
    description: 'Create, read, change and delete groups.',
    help: 'Full control of groups.',
    subscopes: ['groups', 'read:roles:groups', 'delete:groups'],
  },
  groups: {
    description: 'Read and change groups and who belongs to them.',
    help: 'Reads and changes groups and their members. Since roles are given to groups, this can change what users may do.',
    subscopes: ['read:groups', 'list:groups'],
  },
  'list:groups': {
    description: 'List groups.',
    help: 'Lists groups with their names. A filter shortens the list.',
    subscopes: ['read:groups:name'],
  },
  'read:groups': {
    description: 'Read groups and who belongs to them.',
    help: 'Reads groups with their members and properties.',
    subscopes: ['read:groups:name'],
  },
  'read:groups:name': {
    description: 'Read the names of groups.',
    help: 'Reads group names.',
    subscopes: [],
  },
  'delete:groups': {
    description: 'Delete groups.',
    help: 'Deletes groups.',
    subscopes: [],
  },
  'admin:services': {
    description: 'Add, change, delete and restart services, and read their output.',
    help: 'Reads services with their last output, restarts those that the hub runs, and adds, changes and deletes those that are not in the configuration file, as far as the holder may do everything that they may do.',
    subscopes: ['list:services', 'read:services', 'read:roles:services'],
  },
  'list:services': {
    description: 'List services.',
    help: 'Lists services with their names. A filter shortens the list.',
    subscopes: ['read:services:name'],
  },
  'read:services': {
    description: 'Read services.',
    help: 'Reads services: address, command, process and free information.',
    subscopes: ['read:services:name'],
  },
  'read:services:name': {
    description: 'Read the names of services.',
    help: 'Reads service names, and which are administrators.',
    subscopes: [],
  },
  'read:hub': {
    description: 'Read details about the hub.',
    help: 'Reads versions, the names of the authenticator and the spawner, and the instances of the hub.',
    subscopes: [],
  },
  'access:servers': {
    description: "Open users' servers.",
    help: "Reaches users' servers in the browser and by API. Also spelt access:users:servers.",
    subscopes: [],
    ofServers: true,
  },
  'access:services': {
    description: 'Open services.',
    help: 'Reaches services in the browser and by API.',
    subscopes: [],
  },
  shares: {
    description: 'Share servers with others and end such sharing.',
    help: 'Shares servers with users, with groups and by links, and ends that. No one can share more than they may do themselves.',
    subscopes: ['access:servers', 'read:shares', 'users:shares', 'groups:shares'],
    ofServers: true,
  },
  'read:shares': {
    description: 'Read with whom servers are shared.',
    help: 'Reads with whom servers are shared, and which links there are.',
    subscopes: [],
    ofServers: true,
  },
  'users:shares': {
    description: 'See and leave servers shared with users.',
    help: 'Reads which servers are shared with a user, and leaves them.',
    subscopes: ['read:users:shares'],
  },
  'read:users:shares': {
    description: 'See which servers are shared with users.',
    help: 'Reads which servers are shared with a user.',
    subscopes: [],
  },
  'groups:shares': {
    description: 'See and leave servers shared with groups.',
    help: 'Reads which servers are shared with a group, and leaves them.',
    subscopes: ['read:groups:shares'],
  },
  'read:groups:shares': {
    description: 'See which servers are shared with groups.',
    help: 'Reads which servers are shared with a group.',
    subscopes: [],
  },
  proxy: {
    description: 'Read the routing table.',
    help: 'Reads the routing table.',
    subscopes: [],
  },
  shutdown: {
    description: 'Shut the hub down.',
    help: 'Ends the hub.',
    subscopes: [],
  },
  gateway: {
    description: 'Be a gateway of the hub.',
    help: 'For services that are gateway processes: reads routes and the keys of the guard, and asks who visitors are. No user ever holds it.',
    subscopes: [],
    forServicesOnly: true,
  },
  'admin:announcements': {
    description: 'Announce something to all users, and stop the start of servers for maintenance.',
    help: 'Changes the announcement on all pages, and begins and ends maintenance.',
    subscopes: [],
  },
  'read:audit': {
    description: 'Read who did what on the hub.',
    help: 'Reads the audit log: logins, changes and refusals of all users, with their addresses.',
    subscopes: [],
  },
  'read:metrics': {
    description: 'Read the metrics of the hub.',
    help: 'Reads the figures for monitoring.',
    subscopes: [],
  },
} as const satisfies Record<string, ScopeDefinition>;

/** Every known scope, with what it brings along worked out once. */
export interface ScopeCatalogue {
  readonly names: readonly string[];
  get(name: string): ScopeDefinition | undefined;
  /** The scope itself and everything below it, or undefined for an unknown name. */
  withSubscopes(name: string): readonly string[] | undefined;
}

/** The built-in scopes and those of `Hub.custom_scopes`. */
export function createScopeCatalogue(
  customScopes: Readonly<Record<string, CustomScope>> = {},
): ScopeCatalogue {
  const definitions = new Map<string, ScopeDefinition>(Object.entries(scopeDefinitions));
  for (const [name, { description, subscopes }] of Object.entries(customScopes)) {
    if (!definitions.has(name))
      definitions.set(name, { description, help: description, subscopes });
  }
  const families = new Map(
    [...definitions.keys()].map((name) => [name, family(name, definitions)]),
  );
  return {
    names: [...definitions.keys()],
    get: (name) => definitions.get(name),
    withSubscopes: (name) => families.get(name),
  };
}

/**
 * Whether a server can be shared with a scope of this name. What a custom scope is restricted to is for the
 * operator's own services and servers to know.
 */
export function isShareable(name: string, catalogue: ScopeCatalogue): boolean {
  const definition = catalogue.get(name);
  return definition?.ofServers === true || (definition !== undefined && name.startsWith('custom:'));
}

/** Whether a scope as written is one that users never hold. */
export function isForServicesOnly(scope: string, catalogue: ScopeCatalogue): boolean {
  const [name = ''] = scope.split('!', 1);
  return catalogue.get(name)?.forServicesOnly === true;
}

function family(name: string, definitions: ReadonlyMap<string, ScopeDefinition>): string[] {
  const members = new Set([name]);
  // A set yields what is added while it is walked, and never twice: custom scopes may form a circle.
  for (const member of members) {
    for (const subscope of definitions.get(member)?.subscopes ?? []) members.add(subscope);
  }
  return [...members];
}
