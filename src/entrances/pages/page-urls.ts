import { setUpPath } from '../../identity/accounts/set-up-link.ts';
import { type UsersQuery, usersFields } from '../../operations/users-query.ts';
import { encodeSegment } from '../../platform/http/request-address.ts';

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

/** Where every page and form of the hub is; views link by it and the page routes match it. */
export type PageUrls = Readonly<ReturnType<typeof createPageUrls>>;

/** Makes the addresses of the pages below `/hub/` of a base URL, which ends in a slash. */
export function createPageUrls(baseUrl: string) {
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
    /** `/hub/` below the base URL. */
    hub,
    home: `${hub}home`,
    /** The authorization endpoint. */
    authorize: `${hub}api/oauth2/authorize`,
    login: `${hub}login`,
    /** Leads back to a path of the hub's origin. */
    loginThen: (next: string) => withNext(`${hub}login`, next),
    /** Begins a login at an external provider. */
    loginWith: (authenticator: string, next?: string) =>
      next
        ? withNext(below('login/with', authenticator), next)
        : below('login/with', authenticator),
    /** POST logs in by a passkey alone. */
    loginPasskey: `${hub}login/passkey`,
    loginSecondFactor: `${hub}login/second-factor`,
    /** Where a login leads for which a second factor is compulsory and missing. */
    loginSetUp: `${hub}login/set-up-second-factor`,
    loginPassword: `${hub}login/password`,
    /** Where users show again who they are; sent back to `next`. */
    confirmLogin: (next?: string) =>
      `${hub}confirm-login${next ? `?next=${encodeURIComponent(next)}` : ''}`,
    logout: `${hub}logout`,
    setUp: baseUrl + setUpPath,
    invitation: `${hub}invitation`,

    /** GET asks whether to open another user's server, POST keeps the answer; leads to a path of that server. */
    openServer: `${hub}open-server`,
    openServerThen: (next: string) => withNext(`${hub}open-server`, next),
    /** GET shows the options or asks to start, POST starts. */
    spawn: (userName: string, serverName?: string) => below('spawn', userName, serverName),
    /** The same for one's own default server, whoever opens it. */
    ownSpawn: `${hub}spawn`,
    spawnPending: (userName: string, serverName?: string) =>
      below('spawn-pending', userName, serverName),
    stop: (userName: string, serverName?: string) => below('stop', userName, serverName),
    /** POST keeps a server that is about to be stopped for being idle. */
    extend: (userName: string, serverName?: string) => below('extend', userName, serverName),
    /** Everything there is to know of a server. */
    server: (userName: string, serverName?: string) => below('servers', userName, serverName),
    /** POST stops a server if it runs, and starts it again as it was. */
    restartServer: (userName: string, serverName?: string) =>
      below('restart-server', userName, serverName),
    /** GET asks, POST deletes a named server. */
    deleteServer: (userName: string, serverName: string) =>
      below('delete-server', userName, serverName),
    /** POST makes a named server and goes on to its start. */
    createServer: `${hub}create-server`,
    /** GET shows with whom a server is shared, POST changes that. */
    share: (userName: string, serverName?: string) => below('share', userName, serverName),
    endShare: (userName: string, serverName?: string) => below('end-share', userName, serverName),
    makeShareLink: (userName: string, serverName?: string) =>
      below('make-share-link', userName, serverName),
    deleteShareLink: (userName: string, serverName?: string) =>
      below('delete-share-link', userName, serverName),
    /** GET asks whether to accept what a code is for, POST accepts. */
    acceptShare: (code: string) => `${hub}accept-share?code=${encodeURIComponent(code)}`,
    acceptShareForm: `${hub}accept-share`,
    /** POST ends what is shared with oneself. */
    leaveShared: `${hub}leave-shared`,
    /** GET asks for the code that a device shows, and what it may; POST says it. */
    device: `${hub}device`,

    /** POST takes the first steps of a new hub off the home page. */
    dismissFirstRun: `${hub}home/dismiss-first-run`,
    services: `${hub}services`,
    /** Finds servers, services, users and actions by name. */
    search: `${hub}search`,
    /** POST chooses whether a login starts the own server. */
    startAtLogin: `${hub}start-at-login`,
    /** POST marks a service as a favourite, or as none. */
    favouriteService: `${hub}services/favourite`,
    /** POST keeps the theme and the language in the browser. */
    preferences: `${hub}preferences`,

    /** A part of the account, as `sessions` is. */
    tokens: `${hub}account#tokens`,
    createToken: `${hub}token`,
    revokeToken: `${hub}token/revoke`,
    revokeClient: `${hub}token/revoke-client`,
    /** What the reader's servers used. */
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
    /** The same for who has an authenticator app. */
    recoveryCodesByCode: `${hub}account/second-factor/recovery-codes/by-code`,
    /** POST asks the hub for a challenge, as JSON. */
    passkeyQuestion: `${hub}passkey-question`,
    /** POST adds a passkey. */
    passkeys: `${hub}account/passkeys`,
    renamePasskey: `${hub}account/passkeys/rename`,
    removePasskey: `${hub}account/passkeys/remove`,

    admin: `${hub}admin`,
    adminUsers: `${hub}admin/users`,
    adminNewUsers: `${hub}admin/new-users`,
    /** POST makes the users of a list, their links, or takes them back. */
    adminImportUsers: `${hub}admin/import-users`,
    /** POST makes a CSV file of links that were just shown. */
    adminLinksCsv: `${hub}admin/links.csv`,
    /** POST does something to many users, or asks first. */
    adminActOnUsers: `${hub}admin/act-on-users`,
    /** How far that is. */
    adminBatch: (id: string) => below('admin/batches', id),
    adminUser: (userName: string, action?: AdminUserAction) =>
      below('admin/users', userName, action),
    adminGroups: `${hub}admin/groups`,
    adminGroup: (groupName: string, action?: AdminGroupAction) =>
      below('admin/groups', groupName, action),
    adminRoles: `${hub}admin/roles`,
    adminNewRole: `${hub}admin/new-role`,
    /** With one who gets access, or where it is. */
    adminGiveAccess: (about?: Readonly<Partial<Record<'user' | 'group' | 'service', string>>>) =>
      `${hub}admin/give-access${about === undefined ? '' : `?${new URLSearchParams(about)}`}`,
    adminRole: (roleName: string, action?: AdminRoleAction) =>
      below('admin/roles', roleName, action),
    adminServers: `${hub}admin/servers`,
    adminServices: `${hub}admin/services`,
    adminNewService: `${hub}admin/new-service`,
    adminService: (serviceName: string, action?: AdminServiceAction) =>
      below('admin/services', serviceName, action),
    /** Who used how much. */
    adminUsage: `${hub}admin/usage`,
    adminHomes: `${hub}admin/homes`,
    /** POST makes a CSV file of it. */
    adminUsageExport: `${hub}admin/usage.csv`,
    /** POST sets one. */
    adminBudgets: `${hub}admin/budgets`,
    adminRemoveBudget: `${hub}admin/budgets/remove`,
    adminInstances: `${hub}admin/instances`,
    adminActivity: `${hub}admin/activity`,
    adminActivityExport: `${hub}admin/activity.csv`,
    adminLockouts: `${hub}admin/lockouts`,
    adminKeys: `${hub}admin/keys`,
    adminRotateKeys: `${hub}admin/keys/rotate`,
    adminRevokeKey: (id: string) => `${hub}admin/keys/${id}/revoke`,
    adminAnnouncements: `${hub}admin/announcements`,
    adminMaintenance: `${hub}admin/maintenance`,
    adminLiftLockout: `${hub}admin/lockouts/lift`,
  };
}
