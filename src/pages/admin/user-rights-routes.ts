import type { Context } from 'koa';
import type { ActingOnUsers } from '../../accounts/acting-on-users.ts';
import type { GroupMembers } from '../../accounts/group-members.ts';
import { HubError } from '../../errors.ts';
import type { Client } from '../../oauth/clients/client.ts';
import type { AccessToken } from '../../oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../../oauth/tokens/access-token-store.ts';
import { listFilter } from '../../rbac/access-check.ts';
import { reasonsForRoles } from '../../rbac/role-reasons.ts';
import type { RoleStore } from '../../rbac/role-store.ts';
import type { ScopeCatalogue } from '../../rbac/scope-definitions.ts';
import { describeScopes } from '../../rbac/scope-descriptions.ts';
import type { AuditStore } from '../../store/audit-store.ts';
import { type Phrase, type Text, text } from '../../texts/text.ts';
import type { GroupPages } from '../../users/group-pages-store.ts';
import type { User, UserStore } from '../../users/user-store.ts';
import { clientTitle } from '../account/client-title.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import { type Admin, type AdminContext, parameter } from './admin-context.ts';
import { originOfMember, removalNotice } from './removed-member.ts';
import type { UserRightsView, UserToken } from './user-rights.ts';

export interface UserRightsDeps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly acting: Pick<ActingOnUsers, 'requireMayActOn'>;
  readonly members: Pick<GroupMembers, 'add' | 'remove'>;
  readonly groupPages: Pick<GroupPages, 'membershipsOf'>;
  readonly roles: Pick<RoleStore, 'heldBy' | 'listAssignments'>;
  readonly catalogue: ScopeCatalogue;
  readonly accessTokens: Pick<
    AccessTokenStore,
    'listOfUser' | 'findById' | 'revoke' | 'revokeByClientAndUser'
  >;
  readonly auditLog: Pick<AuditStore, 'list'>;
  readonly findClient: (clientId: string) => Promise<Client | undefined>;
}

const mostTokens = 50;
const mostActivity = 10;

/** What is done with a user's groups and tokens, and the page that asks before someone becomes an administrator. */
export function adminUserRightsRoutes(admin: AdminContext, deps: UserRightsDeps): void {
  const { pages } = admin;
  const { users, members, accessTokens } = deps;

  const userOf = (ctx: Context) => users.getByName(parameter(ctx, 'name'));
  const back = (ctx: Context, { name }: User, kind: 'good' | 'bad', told: Text) =>
    pages.redirectWithNotice(ctx, pages.urls.adminUser(name), { kind, text: told });

  admin.get('/admin/users/:name/admin', async (ctx, who) => {
    who.require('admin:users', { kind: 'user', name: parameter(ctx, 'name') });
    const { name } = await userOf(ctx);
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: text`Make ${name} an administrator?`,
      consequences: [
        text`Administrators may do everything on this hub: read and delete all users, and use their servers.`,
      ],
      label: text`Make administrator`,
      action: pages.urls.adminUser(name, 'admin'),
      cancelUrl: pages.urls.adminUser(name),
      fields: { admin: 'true' },
    });
    pages.send(ctx, page);
  });

  admin.post('/admin/users/:name/add-to-group', async (ctx, who, form) => {
    const group = (form.get('group') ?? '').trim();
    who.require('groups', { kind: 'group', name: group });
    who.require('read:users', { kind: 'user', name: parameter(ctx, 'name') });
    const user = await userOf(ctx);
    if (group === '') return back(ctx, user, 'bad', text`Type the name of a group.`);
    try {
      await members.add(who.caller, group, [user.name]);
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== 'not_found') throw error;
      return back(ctx, user, 'bad', text`There is no group “${group}”.`);
    }
    back(ctx, user, 'good', text`${user.name} is in the group ${group}.`);
  });

  admin.post('/admin/users/:name/remove-from-group', async (ctx, who, form) => {
    const group = form.get('group') ?? '';
    who.require('groups', { kind: 'group', name: group });
    who.require('read:users', { kind: 'user', name: parameter(ctx, 'name') });
    const user = await userOf(ctx);
    const origin = await originOfMember(deps.groupPages, user.name, group);
    await members.remove(group, [user.name]);
    const done = text`${user.name} is no longer in the group ${group}.`;
    pages.redirectWithNotice(ctx, pages.urls.adminUser(user.name), removalNotice(done, origin));
  });

  admin.post(
    '/admin/users/:name/revoke-token',
    async (ctx, who, form) => {
      who.require('tokens', { kind: 'user', name: parameter(ctx, 'name') });
      const user = await userOf(ctx);
      await deps.acting.requireMayActOn(who.caller, user, ['tokens']);
      const token = await accessTokens.findById(form.get('token_id') ?? '');
      if (token?.userId !== user.id) {
        return back(ctx, user, 'bad', text`This token has ended already.`);
      }
      // One application holds several tokens of a user: withdrawing its access means all of them.
      if (token.clientId === undefined) await accessTokens.revoke(token.id);
      else await accessTokens.revokeByClientAndUser(token.clientId, user.id);
      back(ctx, user, 'good', text`The token is revoked.`);
    },
    { needsRecentLogin: false },
  );
}

/** What the page shows of a user's rights; what the administrator may not read is left out. */
export async function userRightsOf(
  who: Admin,
  user: User,
  deps: UserRightsDeps,
): Promise<UserRightsView> {
  const may = (scope: string) => who.may(scope, { kind: 'user', name: user.name });
  const maySeeRoles = may('read:roles:users');
  const maySeeTokens = may('read:tokens');
  const maySeeGroups = may('read:users:groups');
  const [groups, tokens, activity] = await Promise.all([
    maySeeGroups || maySeeRoles ? deps.groupPages.membershipsOf(user.name) : [],
    maySeeTokens ? deps.accessTokens.listOfUser(user.id) : [],
    who.may('read:audit')
      ? deps.auditLog.list({ filter: { target: user.name }, limit: mostActivity, after: undefined })
      : undefined,
  ]);
  return {
    groups: maySeeGroups
      ? groups.map((group) => ({
          ...group,
          mayRemove: who.may('groups', { kind: 'group', name: group.name }),
        }))
      : undefined,
    mayAddToGroup: maySeeGroups && listFilter(who.caller.scopes, 'groups') !== undefined,
    roles: maySeeRoles ? await rolesOf(user, groups, deps) : undefined,
    tokens: maySeeTokens
      ? {
          shown: await describedTokens(tokens, deps),
          total: tokens.length,
        }
      : undefined,
    mayRevoke: may('tokens'),
    activity: activity?.entries,
  };
}

async function rolesOf(
  user: User,
  groups: readonly { readonly name: string; readonly origin: string }[],
  { roles, catalogue }: UserRightsDeps,
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
  { catalogue, findClient }: Pick<UserRightsDeps, 'catalogue' | 'findClient'>,
): Promise<UserToken[]> {
  const shown = tokens
    .toSorted((one, other) => other.createdAt.getTime() - one.createdAt.getTime())
    .slice(0, mostTokens);
  const clientIds = [...new Set(shown.flatMap(({ clientId }) => clientId ?? []))];
  const clients = new Map(
    await Promise.all(clientIds.map(async (id) => [id, await findClient(id)] as const)),
  );
  return shown.map((token) => ({
    ...token,
    title: titleOf(token, clients),
    may: describeScopes(token.scopes, catalogue),
  }));
}

function titleOf(
  { note, clientId, server }: AccessToken,
  clients: ReadonlyMap<string, Client | undefined>,
): Phrase {
  if (server !== undefined) {
    return server.serverName === '' ? text`Default server` : text`Server ${server.serverName}`;
  }
  // The reader is an administrator: no server is theirs here.
  if (clientId !== undefined) return clientTitle(clients.get(clientId), clientId, '');
  return note === '' ? text`No note` : note;
}
