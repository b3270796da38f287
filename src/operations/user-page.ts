import { z } from 'zod';
import type { LoadReader } from '../cluster/instances/load-reader.ts';
import type { ActingOnUsers } from '../identity/accounts/acting-on-users.ts';
import type { ConfiguredRights } from '../identity/accounts/configured-rights.ts';
import type { Invitations } from '../identity/accounts/invitations.ts';
import type { SecondFactors } from '../identity/accounts/second-factors.ts';
import type { UserProfiles } from '../identity/accounts/user-profiles.ts';
import type { Authenticators } from '../identity/authentication/create-authenticators.ts';
import type { Client } from '../identity/oauth/clients/client.ts';
import type { AccessToken } from '../identity/oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../identity/oauth/tokens/access-token-store.ts';
import { listFilter } from '../identity/rbac/access-check.ts';
import { reasonsForRoles } from '../identity/rbac/role-reasons.ts';
import type { RoleStore } from '../identity/rbac/role-store.ts';
import type { ScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import { describeScopes } from '../identity/rbac/scope-descriptions.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import type { GroupPages } from '../identity/users/group-pages-store.ts';
import type { IdentityStore } from '../identity/users/identity-store.ts';
import type { InvitationStore } from '../identity/users/invitation-store.ts';
import type { PasswordCredentialStore } from '../identity/users/password-credential-store.ts';
import type { User, UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { loadKeys } from '../platform/metrics/load-history.ts';
import type { AuditStore } from '../platform/store/audit-store.ts';
import { text } from '../platform/texts/text.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import { type OperationRequest, operation, view } from './operation.ts';
import { loginsOf } from './sessions.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly acting: Pick<ActingOnUsers, 'requireMayTakeOver'>;
  readonly configuredRights: Pick<ConfiguredRights, 'givesRightsTo'>;
  readonly userProfiles: Pick<UserProfiles, 'read'>;
  readonly identities: Pick<IdentityStore, 'listForUser'>;
  readonly authenticators: Pick<Authenticators, 'find'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly secondFactors: Pick<SecondFactors, 'find' | 'removeAll'>;
  readonly invitations: Pick<Invitations, 'isUsed'>;
  readonly invitationStore: Pick<InvitationStore, 'listForUser'>;
  readonly logins: Pick<LoginSessions, 'listOfUser' | 'endAllOfUser'>;
  readonly serverStore: Pick<ServerStore, 'listOfUser'>;
  readonly servers: Pick<UserServers, 'prefixOf'>;
  readonly loads: Pick<LoadReader, 'readHere'>;
  readonly groupPages: Pick<GroupPages, 'membershipsOf'>;
  readonly roles: Pick<RoleStore, 'heldBy' | 'listAssignments'>;
  readonly catalogue: ScopeCatalogue;
  readonly accessTokens: Pick<AccessTokenStore, 'listOfUser'>;
  readonly auditLog: Pick<AuditStore, 'list'>;
  readonly findClient: (clientId: string) => Promise<Client | undefined>;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly now: () => number;
}

type May = OperationRequest<never>['may'];

/** Parts of the page of a user; each reads only what it shows. */
const tabs = ['overview', 'access', 'logins', 'activity'] as const;
export type UserTab = (typeof tabs)[number];

const maxTokens = 50;
const maxActivity = 10;

const nameOf = (scopes: readonly string[], id: string, page: string) =>
  view({ id, path: `/admin/users/{name}/${page}`, scopes, target: 'user' }).handle(
    async ({ params }, { users }: Pick<Deps, 'users'>) => ({
      name: (await users.getByName(params['name'] ?? '')).name,
    }),
  );

/** What administrators see of one user, and what they do there alone. */
export const userPageOperations = [
  view({
    id: 'viewUser',
    path: '/admin/users/{name}',
    scopes: ['read:users'],
    target: 'user',
    query: z.object({ tab: z.enum(tabs).default('overview') }),
  }).handle(async ({ params, query: { tab }, caller, may: mayDo }, deps: Deps) => {
    const user = await deps.users.getByName(params.name);
    const may = (scope: string) => mayDo(scope, { kind: 'user', name: user.name });
    const mayChange = may('admin:users');
    const maySee = {
      overview: true,
      access: may('read:users:groups') || may('read:roles:users'),
      logins: may('read:tokens'),
      activity: mayDo('read:audit'),
    };
    const [profile, rights, identities, servers, sessions, credential, factor, links] =
      await Promise.all([
        tab === 'overview' && may('read:users:info') ? deps.userProfiles.read(user) : undefined,
        rightsOf(user, { tab, mayDo }, deps),
        tab === 'overview' && mayChange ? deps.identities.listForUser(user.id) : [],
        may('read:servers') ? deps.serverStore.listOfUser(user.name) : [],
        tab === 'logins' && maySee.logins ? loginsOf(user.id, caller, deps.logins) : undefined,
        deps.credentials.findPasswordHash(user.name),
        deps.secondFactors.find(user.id),
        deps.invitationStore.listForUser(user.id, new Date(deps.now())),
      ]);
    const passwordState =
      credential === undefined ? 'none' : credential.mustChange ? 'must-change' : 'set';
    return {
      tab,
      tabs: tabs.filter((each) => maySee[each]),
      user: {
        name: user.name,
        isAdmin: user.isAdmin,
        isSuspended: user.isSuspended,
        invitation: links.find(({ purpose }) => purpose === 'invitation'),
        createdAt: user.createdAt,
        lastActivityAt: user.lastActivityAt,
        systemAccount: mayChange ? user.systemAccount : undefined,
      },
      profile,
      rights: {
        ...rights,
        mayAddToGroup:
          rights.groups !== undefined && listFilter(caller.scopes, 'groups') !== undefined,
      },
      identities: identities.flatMap(({ authenticator, display, subject }) => {
        const via = deps.authenticators.find(authenticator)?.authenticator;
        if (via?.ownsAccounts === true) return [];
        return [{ label: via?.login.label ?? authenticator, display: display ?? subject }];
      }),
      servers: servers.map((server) => ({
        server,
        prefix: deps.servers.prefixOf(server),
        load: deps.loads.readHere(loadKeys.server(server.id)),
      })),
      /** Of the default server, which every user has in a way. */
      defaultPrefix: may('read:servers')
        ? deps.servers.prefixOf({ userName: user.name, name: '' })
        : undefined,
      sessions,
      password:
        mayChange && deps.invitations.isUsed ? (passwordState as typeof passwordState) : undefined,
      hasSecondFactor: factor !== undefined,
      isSelf: isSelf(user, caller),
    };
  }),
  view({
    id: 'viewUserDeletion',
    path: '/admin/users/{name}/delete',
    scopes: ['delete:users'],
    target: 'user',
  }).handle(async ({ params }, { users, configuredRights }: Deps) => {
    const { name } = await users.getByName(params.name);
    return { name, hasConfiguredRights: configuredRights.givesRightsTo(name) };
  }),
  nameOf(['admin:users'], 'viewNewAdministrator', 'admin'),
  nameOf(['admin:users'], 'viewNewLink', 'link'),
  operation({
    id: 'removeSecondFactors',
    audience: 'page',
    method: 'POST',
    path: '/admin/users/{name}/remove-second-factor',
    audit: ['second_factor.remove', 'session.end', 'logout'],
    log: { level: 'warn', event: 'second factor and passkeys removed' },
    tag: 'users',
    summary: 'Remove the second factor and the passkeys of a user, and end all logins',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    target: 'user',
    answers: { 204: { description: 'The password alone is asked for.' } },
  }).handle(async ({ params, caller }, { users, acting, secondFactors, logins }: Deps) => {
    const user = await users.getByName(params.name);
    if (isSelf(user, caller)) {
      throw new HubError(
        'bad_request',
        text`Turn your own second factor off, and remove your passkeys, on your account page.`,
      );
    }
    await acting.requireMayTakeOver(caller, user);
    await secondFactors.removeAll(user.id);
    // The finder of what was lost may be logged in with it.
    await logins.endAllOfUser(user.id);
  }),
];

function isSelf({ id }: User, caller: { readonly user?: User }): boolean {
  return caller.user?.id === id;
}

/** What a user may do and why; what the caller may not read is left out. */
async function rightsOf(
  user: User,
  { tab, mayDo }: { readonly tab: UserTab; readonly mayDo: May },
  deps: Deps,
) {
  const may = (scope: string) => mayDo(scope, { kind: 'user', name: user.name });
  const maySeeRoles = tab === 'access' && may('read:roles:users');
  const maySeeGroups = tab === 'access' && may('read:users:groups');
  const [groups, tokens, activity] = await Promise.all([
    maySeeGroups || maySeeRoles ? deps.groupPages.membershipsOf(user.name) : [],
    tab === 'logins' && may('read:tokens') ? deps.accessTokens.listOfUser(user.id) : undefined,
    tab === 'activity' && mayDo('read:audit')
      ? deps.auditLog.list({ filter: { target: user.name }, limit: maxActivity, after: undefined })
      : undefined,
  ]);
  return {
    groups: maySeeGroups ? groups : undefined,
    roles: maySeeRoles ? await rolesOf(user, groups, deps) : undefined,
    tokens: tokens && { shown: await describedTokens(tokens, deps), total: tokens.length },
    activity: activity?.entries,
  };
}

async function rolesOf(
  user: User,
  groups: readonly { readonly name: string; readonly origin: string }[],
  { roles, catalogue }: Deps,
) {
  const groupNames = groups.map(({ name }) => name);
  const [held, own, ofGroups] = await Promise.all([
    roles.heldBy({ kind: 'user', name: user.name, isAdmin: user.isAdmin, groupNames }),
    roles.listAssignments({ subjectKind: 'user', subjectName: user.name }),
    groups.length > 0 ? roles.listAssignments({ subjectKind: 'group' }) : [],
  ]);
  const reasons = reasonsForRoles({ ...user, groups }, [...own, ...ofGroups]);
  return held.map(({ name, scopes }) => ({
    name,
    reasons: reasons.get(name) ?? [],
    allows: describeScopes(scopes, catalogue),
  }));
}

/** The newest ones. */
async function describedTokens(
  tokens: readonly AccessToken[],
  { catalogue, findClient }: Pick<Deps, 'catalogue' | 'findClient'>,
) {
  const shown = tokens
    .toSorted((one, other) => other.createdAt.getTime() - one.createdAt.getTime())
    .slice(0, maxTokens);
  const clientIds = [...new Set(shown.flatMap(({ clientId }) => clientId ?? []))];
  const clients = new Map(
    await Promise.all(clientIds.map(async (id) => [id, await findClient(id)] as const)),
  );
  return shown.map((token) => ({
    ...token,
    client: token.clientId === undefined ? undefined : clients.get(token.clientId),
    may: describeScopes(token.scopes, catalogue),
  }));
}
