import { type Phrase, text } from '../../platform/texts/text.ts';

/** Where a scope stands in lists for people. */
export type ScopeGroup = 'account' | 'servers' | 'services' | 'sharing' | 'people' | 'hub';

/** What a scope allows, in plain words. */
export interface ScopeLabels {
  /** A short phrase without a full stop: completes "It may: …". */
  readonly description: Phrase;
  /** The same where it is restricted to what belongs to the reader. */
  readonly own?: Phrase;
  /** For the reference documentation. */
  readonly help: string;
  /** Group of the restricted form where there is `own`: all others are then among `people`. */
  readonly group: ScopeGroup;
  /** What a holder could do with it beyond its words, where it holds for others or for the hub. */
  readonly risk?: Phrase;
}

/** Titles of the groups, in the order in which they are shown. */
export const scopeGroupTitles: Readonly<Record<ScopeGroup, Phrase>> = {
  account: text`Your account`,
  servers: text`Your servers`,
  services: text`Services`,
  sharing: text`Sharing`,
  people: text`People and groups`,
  hub: text`Running the hub`,
};

/** The words of every built-in scope: for tokens, consent, roles, users and the reference documentation. */
export const scopeLabels = {
  '(no_scope)': {
    description: text`Say who its owner is, and nothing else`,
    own: text`Know that you are logged in, and nothing else`,
    help: 'Identifies the owner of a request and allows nothing else.',
    group: 'account',
  },
  self: {
    description: text`Do everything with their own account, servers and tokens`,
    own: text`Do everything with your account, servers and tokens`,
    help: "A user's own resources: reading the account, its servers, tokens and activity. For a service it means nothing.",
    group: 'account',
  },
  inherit: {
    description: text`Do everything its owner may do`,
    own: text`Do everything you may do`,
    help: 'For tokens: whatever the owner of the token may do at the moment of use.',
    group: 'account',
  },
  'admin-ui': {
    description: text`Open the administration page`,
    help: 'Opens the administration page. Each action on it needs its own scope as well.',
    group: 'hub',
  },
  'admin:users': {
    description: text`Create, read, change and delete users`,
    own: text`Read, change and delete your account`,
    help: 'Full control of user accounts. Treat a holder as an administrator.',
    group: 'account',
    risk: text`As powerful as an administrator.`,
  },
  'admin:auth_state': {
    description: text`Read what login providers told about users`,
    own: text`Read what your login provider told about you`,
    help: 'Reads the login state that an authenticator keeps for a user, such as tokens of the provider.',
    group: 'account',
    risk: text`Includes tokens of the login provider.`,
  },
  users: {
    description: text`Read and change users`,
    own: text`Read and change your account`,
    help: 'Lists, reads and changes user accounts, except for creating and deleting them.',
    group: 'account',
  },
  'delete:users': {
    description: text`Delete users`,
    own: text`Delete your account`,
    help: 'Deletes user accounts with their servers and tokens.',
    group: 'account',
    risk: text`Cannot be undone.`,
  },
  'list:users': {
    description: text`List users`,
    own: text`Find you in the list of users`,
    help: 'Lists user accounts with their names. A filter shortens the list.',
    group: 'account',
  },
  'read:users': {
    description: text`Read the name, groups and activity of users`,
    own: text`Know your user name, groups and activity`,
    help: 'Reads user accounts: names, roles, group membership, last activity, and whether the default server runs.',
    group: 'account',
  },
  'read:users:name': {
    description: text`Read the names of users`,
    own: text`Know your user name`,
    help: 'Reads user names, and who is an administrator.',
    group: 'account',
  },
  'read:users:groups': {
    description: text`Read which groups users belong to`,
    own: text`Know your groups`,
    help: 'Reads the group membership of users.',
    group: 'account',
  },
  'read:users:info': {
    description: text`Read the display names, e-mail addresses and pictures of users`,
    own: text`Know your display name, e-mail address and picture`,
    help: 'Reads `user_info`: the display name, e-mail address and picture of users, where they are known.',
    group: 'account',
  },
  'read:users:activity': {
    description: text`Read when users were last active`,
    own: text`Know when you were last active`,
    help: 'Reads the time of last activity of users and their servers.',
    group: 'account',
  },
  'users:activity': {
    description: text`Report and read when users were last active`,
    own: text`Report and read when you were last active`,
    help: 'Moves the time of last activity of users and their servers forward.',
    group: 'account',
  },
  'read:roles': {
    description: text`Read roles and who holds them`,
    help: 'Lists roles with what they allow, and reads the roles of users, services and groups.',
    group: 'people',
  },
  'read:roles:users': {
    description: text`Read which roles users hold`,
    own: text`Know which roles you hold`,
    help: 'Reads the roles of users.',
    group: 'account',
  },
  'read:roles:services': {
    description: text`Read which roles services hold`,
    help: 'Reads the roles of services.',
    group: 'hub',
  },
  'read:roles:groups': {
    description: text`Read which roles groups hold`,
    help: 'Reads the roles of groups.',
    group: 'people',
  },
  'admin:roles': {
    description: text`Create, change, delete and assign roles`,
    help: 'Makes, changes and deletes the roles that are not in the configuration file, and gives roles to users, groups and services or takes them away; only roles whose every scope the holder has.',
    group: 'hub',
    risk: text`Decides what others may do.`,
  },
  'admin:servers': {
    description: text`Start, stop and read users' servers, with their internal state`,
    own: text`Start, stop and read your servers, with their internal state`,
    help: "Full control of users' servers, including the state that the spawner keeps.",
    group: 'servers',
    risk: text`Stops the work of others.`,
  },
  'admin:server_state': {
    description: text`Read the internal state of servers`,
    own: text`Read the internal state of your servers`,
    help: 'Reads what the spawner keeps to find a running server again.',
    group: 'servers',
  },
  servers: {
    description: text`Start, stop and read users' servers`,
    own: text`Start, stop and read your servers`,
    help: "Reads, starts, edits, stops and deletes users' servers.",
    group: 'servers',
    risk: text`Stops the work of others.`,
  },
  'read:servers': {
    description: text`Read the state of users' servers`,
    own: text`Read the state of your servers`,
    help: "Reads users' servers: whether they run, since when, and under which address.",
    group: 'servers',
  },
  'start:servers': {
    description: text`Start users' servers`,
    own: text`Start your servers`,
    help: "Starts users' servers and edits their options.",
    group: 'servers',
  },
  'delete:servers': {
    description: text`Stop and delete users' servers`,
    own: text`Stop and delete your servers`,
    help: "Stops users' servers and deletes named ones.",
    group: 'servers',
    risk: text`Stops the work of others.`,
  },
  tokens: {
    description: text`Create, read and revoke users' access tokens`,
    own: text`Create, read and revoke your access tokens`,
    help: 'Creates, reads and revokes access tokens. No one can put more into a token than its owner may do.',
    group: 'account',
    risk: text`Can act as these users.`,
  },
  'read:tokens': {
    description: text`Read which access tokens users have`,
    own: text`Read which access tokens you have`,
    help: 'Reads notes, scopes and times of access tokens, never the tokens themselves.',
    group: 'account',
  },
  'admin:groups': {
    description: text`Create, read, change and delete groups`,
    help: 'Full control of groups.',
    group: 'people',
    risk: text`Roles come with groups: this can change what users may do.`,
  },
  groups: {
    description: text`Read and change groups and who belongs to them`,
    help: 'Reads and changes groups and their members. Since roles are given to groups, this can change what users may do.',
    group: 'people',
    risk: text`Roles come with groups: this can change what users may do.`,
  },
  'list:groups': {
    description: text`List groups`,
    help: 'Lists groups with their names. A filter shortens the list.',
    group: 'people',
  },
  'read:groups': {
    description: text`Read groups and who belongs to them`,
    help: 'Reads groups with their members and properties.',
    group: 'people',
  },
  'read:groups:name': {
    description: text`Read the names of groups`,
    help: 'Reads group names.',
    group: 'people',
  },
  'delete:groups': {
    description: text`Delete groups`,
    help: 'Deletes groups.',
    group: 'people',
    risk: text`Cannot be undone.`,
  },
  'admin:services': {
    description: text`Add, change, delete and restart services, and read their output`,
    help: 'Reads services with their last output, restarts those that the hub runs, and adds, changes and deletes those that are not in the configuration file, as far as the holder may do everything that they may do.',
    group: 'hub',
    risk: text`Can interrupt services for everyone.`,
  },
  'list:services': {
    description: text`List services`,
    help: 'Lists services with their names. A filter shortens the list.',
    group: 'hub',
  },
  'read:services': {
    description: text`Read services`,
    help: 'Reads services: address, command, process and free information.',
    group: 'hub',
  },
  'read:services:name': {
    description: text`Read the names of services`,
    help: 'Reads service names, and which are administrators.',
    group: 'hub',
  },
  'read:hub': {
    description: text`Read details about the hub`,
    help: 'Reads versions, the names of the authenticator and the spawner, and the instances of the hub.',
    group: 'hub',
  },
  'access:servers': {
    description: text`Open users' servers`,
    own: text`Open your servers`,
    help: "Reaches users' servers in the browser and by API. Also spelt access:users:servers.",
    group: 'servers',
    risk: text`Reaches everything in these users' files.`,
  },
  'access:services': {
    description: text`Open all services`,
    help: 'Reaches services in the browser and by API.',
    group: 'services',
  },
  shares: {
    description: text`Share users' servers with others and end such sharing`,
    own: text`Share your servers with others and end such sharing`,
    help: 'Shares servers with users, with groups and by links, and ends that. No one can share more than they may do themselves.',
    group: 'sharing',
    risk: text`Opens these users' servers to others.`,
  },
  'read:shares': {
    description: text`Read with whom users' servers are shared`,
    own: text`Read with whom your servers are shared`,
    help: 'Reads with whom servers are shared, and which links there are.',
    group: 'sharing',
  },
  'users:shares': {
    description: text`See and leave servers shared with users`,
    own: text`See and leave servers shared with you`,
    help: 'Reads which servers are shared with a user, and leaves them.',
    group: 'sharing',
  },
  'read:users:shares': {
    description: text`See which servers are shared with users`,
    own: text`See which servers are shared with you`,
    help: 'Reads which servers are shared with a user.',
    group: 'sharing',
  },
  'groups:shares': {
    description: text`See and leave servers shared with groups`,
    help: 'Reads which servers are shared with a group, and leaves them.',
    group: 'people',
  },
  'read:groups:shares': {
    description: text`See which servers are shared with groups`,
    help: 'Reads which servers are shared with a group.',
    group: 'people',
  },
  proxy: {
    description: text`Read the routing table`,
    help: 'Reads the routing table.',
    group: 'hub',
  },
  shutdown: {
    description: text`Shut the hub down`,
    help: 'Ends the hub.',
    group: 'hub',
    risk: text`Interrupts everyone.`,
  },
  gateway: {
    description: text`Be a gateway of the hub`,
    help: 'For services that are gateway processes: reads routes and the keys of the guard, and asks who visitors are. No user ever holds it.',
    group: 'hub',
  },
  'admin:announcements': {
    description: text`Announce something to all users, and stop the start of servers for maintenance`,
    help: 'Changes the announcement on all pages, and begins and ends maintenance.',
    group: 'hub',
    risk: text`Speaks to everyone.`,
  },
  'read:audit': {
    description: text`Read who did what on the hub`,
    help: 'Reads the audit log: logins, changes and refusals of all users, with their addresses.',
    group: 'hub',
    risk: text`Shows what everyone does, and from where.`,
  },
  'read:metrics': {
    description: text`Read the metrics of the hub`,
    help: 'Reads the figures for monitoring.',
    group: 'hub',
  },
} as const satisfies Record<string, ScopeLabels>;
