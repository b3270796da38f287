import { setUpPath } from '../../identity/accounts/set-up-link.ts';
import { type UsersQuery, usersFields } from '../../operations/users-query.ts';
import { encodeSegment } from '../../platform/http/request-address.ts';

/** Where every page and form of the hub is; views link by it and the page routes match it. */
export interface PageUrls {
  /** `/hub/` below the base URL. */
  readonly hub: string;
  readonly home: string;
  /** The authorization endpoint. */
  readonly authorize: string;
  readonly login: string;
  /** Leads back to a path of the hub's origin. */
  loginThen(next: string): string;
  /** Begins a login at an external provider. */
  loginWith(authenticator: string, next?: string): string;
  /** POST logs in by a passkey alone. */
  readonly loginPasskey: string;
  readonly loginSecondFactor: string;
  readonly loginPassword: string;
  /** Where a login leads for which a second factor is compulsory and missing. */
  readonly loginSetUp: string;
  /** Where users show again who they are; sent back to `next`. */
  confirmLogin(next?: string): string;
  readonly logout: string;
  readonly setUp: string;
  readonly invitation: string;

  /** GET asks whether to open another user's server, POST keeps the answer; leads to a path of that server. */
  readonly openServer: string;
  openServerThen(next: string): string;
  /** GET shows the options or asks to start, POST starts. */
  spawn(userName: string, serverName?: string): string;
  /** The same for one's own default server, whoever opens it. */
  readonly ownSpawn: string;
  spawnPending(userName: string, serverName?: string): string;
  stop(userName: string, serverName?: string): string;
  /** POST keeps a server that is about to be stopped for being idle. */
  extend(userName: string, serverName?: string): string;
  /** Everything there is to know of a server. */
  server(userName: string, serverName?: string): string;
  /** POST stops a server if it runs, and starts it again as it was. */
  restartServer(userName: string, serverName?: string): string;
  /** GET asks, POST deletes a named server. */
  deleteServer(userName: string, serverName: string): string;
  /** GET shows with whom a server is shared, POST changes that. */
  share(userName: string, serverName?: string): string;
  endShare(userName: string, serverName?: string): string;
  makeShareLink(userName: string, serverName?: string): string;
  deleteShareLink(userName: string, serverName?: string): string;
  /** GET asks whether to accept what a code is for, POST accepts. */
  acceptShare(code: string): string;
  readonly acceptShareForm: string;
  /** POST ends what is shared with oneself. */
  readonly leaveShared: string;
  /** GET asks for the code that a device shows, and what it may; POST says it. */
  readonly device: string;
  /** POST makes a named server and goes on to its start. */
  readonly createServer: string;

  /** POST takes the first steps of a new hub off the home page. */
  readonly dismissFirstRun: string;
  readonly services: string;
  /** Finds servers, services, users and actions by name. */
  readonly search: string;
  /** POST chooses whether a login starts the own server. */
  readonly startAtLogin: string;
  /** POST marks a service as a favourite, or as none. */
  readonly favouriteService: string;
  /** POST keeps the theme and the language in the browser. */
  readonly preferences: string;

  /** A part of the account, as `sessions` is. */
  readonly tokens: string;
  readonly createToken: string;
  readonly revokeToken: string;
  readonly revokeClient: string;
  /** What the reader's servers used. */
  readonly usage: string;
  readonly sessions: string;
  readonly endSession: string;
  readonly endOtherSessions: string;
  readonly account: string;
  readonly changeProfile: string;
  readonly changePassword: string;
  readonly linkIdentity: string;
  readonly unlinkIdentity: string;
  readonly secondFactor: string;
  readonly removeSecondFactor: string;
  readonly recoveryCodes: string;
  /** The same for who has an authenticator app. */
  readonly recoveryCodesByCode: string;
  /** POST asks the hub for a challenge, as JSON. */
  readonly passkeyQuestion: string;
  /** POST adds a passkey. */
  readonly passkeys: string;
  readonly renamePasskey: string;
  readonly removePasskey: string;

  readonly admin: string;
  readonly adminUsers: string;
  readonly adminNewUsers: string;
  /** POST makes the users of a list, their links, or takes them back. */
  readonly adminImportUsers: string;
  /** POST does something to many users, or asks first. */
  readonly adminActOnUsers: string;
  /** POST makes a CSV file of links that were just shown. */
  readonly adminLinksCsv: string;
  /** How far that is. */
  adminBatch(id: string): string;
  adminUser(userName: string, action?: AdminUserAction): string;
  readonly adminGroups: string;
  adminGroup(groupName: string, action?: AdminGroupAction): string;
  readonly adminRoles: string;
  readonly adminNewRole: string;
  /** With one who gets access, or where it is. */
  adminGiveAccess(about?: Readonly<Partial<Record<'user' | 'group' | 'service', string>>>): string;
  adminRole(roleName: string, action?: AdminRoleAction): string;
  readonly adminServers: string;
  readonly adminServices: string;
  readonly adminNewService: string;
  adminService(serviceName: string, action?: AdminServiceAction): string;
  /** Who used how much. */
  readonly adminUsage: string;
  readonly adminHomes: string;
  /** POST makes a CSV file of it. */
  readonly adminUsageExport: string;
  /** POST sets one. */
  readonly adminBudgets: string;
  readonly adminRemoveBudget: string;
  readonly adminInstances: string;
  readonly adminActivity: string;
  readonly adminActivityExport: string;
  readonly adminLockouts: string;
  readonly adminKeys: string;
  readonly adminRotateKeys: string;
  adminRevokeKey(id: string): string;
  readonly adminAnnouncements: string;
  readonly adminMaintenance: string;
  readonly adminLiftLockout: string;
}

/** What an administrator does to one user: the last part of the address. */
export type AdminUserAction =
  | 'delete'
  | 'profile'
  | 'admin'
  | 'invitation'
  | 'end-session'
  | 'end-sessions'
  | 'link'
  | 'remove-second-factor'
  | 'suspend'
  | 'unsuspend'
  | 'add-to-group'
  | 'remove-from-group'
  | 'revoke-token';

/** What an administrator does to one service. */
export type AdminServiceAction = 'start' | 'stop' | 'restart' | 'edit' | 'delete';

/** What an administrator does to one role. */
export type AdminRoleAction = 'edit' | 'delete' | 'assign' | 'take-away';

/** What an administrator does to one group. */
export type AdminGroupAction = 'delete' | 'properties' | 'add-members' | 'remove-member';

/** An address with those of the fields that are given. */
export function withQuery(
  url: string,
  fields: Readonly<Record<string, string | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) query.set(name, value);
  }
  return query.size === 0 ? url : `${url}?${query}`;
}

/** The address of a part of the list of users. */
export function usersUrl({ adminUsers }: Pick<PageUrls, 'adminUsers'>, query: UsersQuery): string {
  return withQuery(adminUsers, usersFields(query));
}

/** Makes the addresses of the pages below `/hub/` of a base URL, which ends in a slash. */
export function createPageUrls(baseUrl: string): PageUrls {
  const hub = `${baseUrl}hub/`;
  const below = (page: string, ...parts: readonly (string | undefined)[]): string =>
    [
      hub + page,
      ...parts
        .filter((part) => part !== undefined && part !== '')
        .map((part) => encodeSegment(part ?? '')),
    ].join('/');

  const withNext = (url: string, next: string): string => `${url}?next=${encodeURIComponent(next)}`;

  return {
    hub,
    home: `${hub}home`,
    authorize: `${hub}api/oauth2/authorize`,
    login: `${hub}login`,
    loginThen: (next) => withNext(`${hub}login`, next),
    loginWith: (authenticator, next) =>
      next
        ? withNext(below('login/with', authenticator), next)
        : below('login/with', authenticator),
    loginPasskey: `${hub}login/passkey`,
    loginSecondFactor: `${hub}login/second-factor`,
    loginSetUp: `${hub}login/set-up-second-factor`,
    loginPassword: `${hub}login/password`,
    confirmLogin: (next) => `${hub}confirm-login${next ? `?next=${encodeURIComponent(next)}` : ''}`,
    logout: `${hub}logout`,
    setUp: baseUrl + setUpPath,
    invitation: `${hub}invitation`,

    openServer: `${hub}open-server`,
    openServerThen: (next) => withNext(`${hub}open-server`, next),
    spawn: (userName, serverName) => below('spawn', userName, serverName),
    ownSpawn: `${hub}spawn`,
    spawnPending: (userName, serverName) => below('spawn-pending', userName, serverName),
    stop: (userName, serverName) => below('stop', userName, serverName),
    extend: (userName, serverName) => below('extend', userName, serverName),
    server: (userName, serverName) => below('servers', userName, serverName),
    restartServer: (userName, serverName) => below('restart-server', userName, serverName),
    deleteServer: (userName, serverName) => below('delete-server', userName, serverName),
    createServer: `${hub}create-server`,
    share: (userName, serverName) => below('share', userName, serverName),
    endShare: (userName, serverName) => below('end-share', userName, serverName),
    makeShareLink: (userName, serverName) => below('make-share-link', userName, serverName),
    deleteShareLink: (userName, serverName) => below('delete-share-link', userName, serverName),
    acceptShare: (code) => `${hub}accept-share?code=${encodeURIComponent(code)}`,
    acceptShareForm: `${hub}accept-share`,
    leaveShared: `${hub}leave-shared`,
    device: `${hub}device`,

    dismissFirstRun: `${hub}home/dismiss-first-run`,
    services: `${hub}services`,
    search: `${hub}search`,
    startAtLogin: `${hub}start-at-login`,
    favouriteService: `${hub}services/favourite`,
    preferences: `${hub}preferences`,

    tokens: `${hub}account#tokens`,
    createToken: `${hub}token`,
    revokeToken: `${hub}token/revoke`,
    revokeClient: `${hub}token/revoke-client`,
    usage: `${hub}usage`,
    sessions: `${hub}account#sessions`,
    endSession: `${hub}sessions/end`,
    endOtherSessions: `${hub}sessions/end-others`,
    account: `${hub}account`,
    changeProfile: `${hub}account/profile`,
    changePassword: `${hub}account/password`,
    linkIdentity: `${hub}account/identities/link`,
    unlinkIdentity: `${hub}account/identities/unlink`,
    secondFactor: `${hub}account/second-factor`,
    removeSecondFactor: `${hub}account/second-factor/remove`,
    recoveryCodes: `${hub}account/second-factor/recovery-codes`,
    recoveryCodesByCode: `${hub}account/second-factor/recovery-codes/by-code`,
    passkeyQuestion: `${hub}passkey-question`,
    passkeys: `${hub}account/passkeys`,
    renamePasskey: `${hub}account/passkeys/rename`,
    removePasskey: `${hub}account/passkeys/remove`,

    admin: `${hub}admin`,
    adminUsers: `${hub}admin/users`,
    adminNewUsers: `${hub}admin/new-users`,
    adminImportUsers: `${hub}admin/import-users`,
    adminLinksCsv: `${hub}admin/links.csv`,
    adminActOnUsers: `${hub}admin/act-on-users`,
    adminBatch: (id) => below('admin/batches', id),
    adminUser: (userName, action) => below('admin/users', userName, action),
    adminGroups: `${hub}admin/groups`,
    adminGroup: (groupName, action) => below('admin/groups', groupName, action),
    adminRoles: `${hub}admin/roles`,
    adminNewRole: `${hub}admin/new-role`,
    adminGiveAccess: (about) =>
      `${hub}admin/give-access${about === undefined ? '' : `?${new URLSearchParams(about)}`}`,
    adminRole: (roleName, action) => below('admin/roles', roleName, action),
    adminServers: `${hub}admin/servers`,
    adminServices: `${hub}admin/services`,
    adminNewService: `${hub}admin/new-service`,
    adminService: (serviceName, action) => below('admin/services', serviceName, action),
    adminUsage: `${hub}admin/usage`,
    adminHomes: `${hub}admin/homes`,
    adminUsageExport: `${hub}admin/usage.csv`,
    adminBudgets: `${hub}admin/budgets`,
    adminRemoveBudget: `${hub}admin/budgets/remove`,
    adminInstances: `${hub}admin/instances`,
    adminActivity: `${hub}admin/activity`,
    adminActivityExport: `${hub}admin/activity.csv`,
    adminLockouts: `${hub}admin/lockouts`,
    adminKeys: `${hub}admin/keys`,
    adminRotateKeys: `${hub}admin/keys/rotate`,
    adminRevokeKey: (id) => `${hub}admin/keys/${id}/revoke`,
    adminAnnouncements: `${hub}admin/announcements`,
    adminMaintenance: `${hub}admin/maintenance`,
    adminLiftLockout: `${hub}admin/lockouts/lift`,
  };
}
