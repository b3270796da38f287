import type { Context } from 'koa';
import type { Accounts } from '../../accounts/accounts.ts';
import {
  type Invitations,
  invitationLifetimeSeconds,
  type NewInvitation,
} from '../../accounts/invitations.ts';
import { HubError } from '../../errors.ts';
import { listedUserNames, listFilter, userNamesFor } from '../../rbac/access-check.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import type { InvitationStore } from '../../users/invitation-store.ts';
import { noInfo } from '../../users/user-info.ts';
import type { UserInfoStore } from '../../users/user-info-store.ts';
import type { User, UserStore } from '../../users/user-store.ts';
import { summaryOf } from '../servers/server-views.ts';
import type { Admin, AdminContext } from './admin-context.ts';
import { adminTabUrl } from './admin-layout.ts';
import { adminTabsOf } from './admin-tabs.ts';
import { invitationLinksPage, newUsersPage } from './new-users-page.ts';
import { type AdminUserRow, adminUsersPage, usersUrl } from './users-page.ts';

const pageLength = 50;

/** `/hub/admin` and `/hub/admin/new-users`: the list of users, and more of them. */
export function adminUserListRoutes(
  admin: AdminContext,
  deps: {
    readonly users: UserStore;
    readonly userInfo: Pick<UserInfoStore, 'ofAll'>;
    readonly servers: Pick<ServerStore, 'listByUser'>;
    readonly accounts: Accounts;
    readonly invitations: Invitations;
    readonly invitationStore: Pick<InvitationStore, 'listByUser'>;
  },
): void {
  const { pages } = admin;
  const { users, accounts, invitations } = deps;

  async function rowsOf(listed: readonly User[], { may }: Admin): Promise<AdminUserRow[]> {
    const maySeeServers = (name: string) => may('read:servers', { kind: 'user', name });
    const maySeeInfo = (name: string) => may('read:users:info', { kind: 'user', name });
    const [servers, infos, open] = await Promise.all([
      deps.servers.listByUser(listed.filter(({ name }) => maySeeServers(name)).map(({ id }) => id)),
      deps.userInfo.ofAll(listed.filter(({ name }) => maySeeInfo(name)).map(({ id }) => id)),
      deps.invitationStore.listByUser(
        listed.map(({ id }) => id),
        new Date(),
      ),
    ]);
    return listed.map(({ id, name, isAdmin, lastActivityAt }) => {
      const summaries = (servers.get(id) ?? []).map((server) => summaryOf(server, ''));
      const { displayName, email } = infos.get(id) ?? noInfo;
      return {
        name,
        displayName,
        email,
        isAdmin,
        isInvited: (open.get(id) ?? []).some(({ purpose }) => purpose === 'invitation'),
        lastActivityAt,
        server: summaries.find((server) => server.name === '')?.state ?? 'stopped',
        runningNamedServers: summaries.filter(
          (server) =>
            server.name !== '' && (server.state === 'running' || server.state === 'starting'),
        ).length,
      };
    });
  }

  admin.get('/admin', async (ctx, who) => {
    const filter = listFilter(who.caller.scopes, 'list:users');
    if (filter === undefined) {
      // The navigation leads here, also for those who may see another part only.
      const [first] = adminTabsOf(who.caller.scopes);
      if (first === undefined) who.require('list:users');
      else return ctx.redirect(adminTabUrl(pages.urls, first));
    }
    const search = textOf(ctx, 'search').slice(0, 255);
    const sort = textOf(ctx, 'sort') === 'activity' ? 'activity' : 'name';
    const offset = /^\d{1,9}$/.test(textOf(ctx, 'offset')) ? Number(textOf(ctx, 'offset')) : 0;
    const page = await users.list({
      offset,
      limit: pageLength,
      nameFilter: search,
      searchesInfoOf: userNamesFor(who.caller.scopes, 'read:users:info', who.membership),
      sort: sort === 'activity' ? '-lastActivity' : 'name',
      ...(filter === undefined || filter === 'all'
        ? {}
        : { onlyNames: listedUserNames(filter, who.membership) }),
    });
    if (page.items.length === 0 && page.total > 0) {
      const last = Math.floor((page.total - 1) / pageLength) * pageLength;
      return ctx.redirect(usersUrl(pages.urls, { search, sort, offset: last }));
    }
    pages.send(
      ctx,
      adminUsersPage({
        mayAdd: who.may('admin:users'),
        layout: await pages.formLayoutFor(ctx),
        users: await rowsOf(page.items, who),
        total: page.total,
        offset,
        limit: pageLength,
        search,
        sort,
      }),
    );
  });

  admin.get('/admin/new-users', async (ctx, who) => {
    who.require('admin:users');
    const layout = await pages.formLayoutFor(ctx);
    pages.send(ctx, newUsersPage({ layout, canInvite: invitations.isUsed }));
  });

  admin.post('/admin/new-users', async (ctx, who, form) => {
    who.require('admin:users');
    const typedNames = form.get('names') ?? '';
    const names = typedNames.split(/[\r\n,]+/).flatMap((name) => name.trim() || []);
    let created: User[];
    try {
      if (names.length === 0) throw new HubError('bad_request', 'Type at least one name.');
      created = await accounts.create(who.caller, names, {
        isAdmin: form.get('admin') === 'true',
      });
    } catch (error) {
      const isMistake =
        error instanceof HubError && (error.code === 'bad_request' || error.code === 'conflict');
      if (!isMistake) throw error;
      const layout = await pages.formLayoutFor(ctx);
      const canInvite = invitations.isUsed;
      const page = newUsersPage({ layout, typedNames, problem: error.message, canInvite });
      return pages.send(ctx, page, 400);
    }
    if (form.get('invite') === 'true' && invitations.isUsed) {
      const links: NewInvitation[] = [];
      for (const { name } of created) links.push(await invitations.create(who.caller, name));
      return pages.send(
        ctx,
        invitationLinksPage({
          layout: await pages.formLayoutFor(ctx),
          purpose: 'invitation',
          links: links.map(({ user, url }) => ({
            userName: user.name,
            url,
          })),
          lifetimeSeconds: invitationLifetimeSeconds.invitation,
        }),
      );
    }
    const added = created.length === 1 ? '1 user is added.' : `${created.length} users are added.`;
    const others = new Set(names).size - created.length;
    const rest = others > 0 ? ` The others were there already.` : '';
    pages.redirectWithNotice(ctx, pages.urls.admin, { kind: 'good', text: added + rest });
  });
}

function textOf(ctx: Context, name: string): string {
  const value = ctx.query[name];
  return typeof value === 'string' ? value : '';
}
