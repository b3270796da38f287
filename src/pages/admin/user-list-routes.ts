import { type Accounts, mostNewUsers } from '../../accounts/accounts.ts';
import {
  type Invitations,
  invitationLifetimeSeconds,
  type NewInvitation,
} from '../../accounts/invitations.ts';
import { HubError } from '../../errors.ts';
import type { LoadReader } from '../../instances/load-reader.ts';
import { loadKeys } from '../../metrics/load-history.ts';
import { listFilter } from '../../rbac/access-check.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import { joined, message, text, translated } from '../../texts/text.ts';
import type { GroupStore } from '../../users/group-store.ts';
import type { InvitationStore } from '../../users/invitation-store.ts';
import { noInfo } from '../../users/user-info.ts';
import type { UserInfoStore } from '../../users/user-info-store.ts';
import type { User, UserStore } from '../../users/user-store.ts';
import { toCsv } from '../csv.ts';
import { bordersOf, lastPageOf } from '../elements/paging.ts';
import { summaryOf } from '../servers/server-views.ts';
import type { Admin, AdminContext } from './admin-context.ts';
import { adminTabUrl } from './admin-layout.ts';
import { adminTabsOf } from './admin-tabs.ts';
import { invitationLinksPage, newUsersPage } from './new-users-page.ts';
import { knownOfUsers, usersFilterFor } from './users-filter.ts';
import { type AdminUserRow, type AdminUsersView, adminUsersPage } from './users-page.ts';
import { readUsersQuery, storeOptionsOf, usersUrl } from './users-query.ts';

/** `/hub/admin` and `/hub/admin/new-users`: the list of users, and more of them. */
export function adminUserListRoutes(
  admin: AdminContext,
  deps: {
    readonly users: UserStore;
    readonly userInfo: Pick<UserInfoStore, 'ofAll'>;
    readonly serverStore: Pick<ServerStore, 'listByUser'>;
    readonly servers: Pick<UserServers, 'prefixOf'>;
    readonly loads: Pick<LoadReader, 'readHere'>;
    readonly groups: Pick<GroupStore, 'groupNamesByUser'>;
    /** What an administrator can do with many users at once. */
    readonly actsOf: (who: Admin) => AdminUsersView['acts'];
    readonly accounts: Accounts;
    readonly invitations: Invitations;
    readonly invitationStore: Pick<InvitationStore, 'listByUser'>;
  },
): void {
  const { pages } = admin;
  const { users, accounts, invitations } = deps;

  /** One query for each thing that is shown, however many users there are. */
  async function rowsOf(listed: readonly User[], { may }: Admin): Promise<AdminUserRow[]> {
    const idsOf = (shown: readonly User[]) => shown.map(({ id }) => id);
    const those = (scope: string) =>
      idsOf(listed.filter(({ name }) => may(scope, { kind: 'user', name })));
    const [servers, infos, open, groups] = await Promise.all([
      deps.serverStore.listByUser(those('read:servers')),
      deps.userInfo.ofAll(those('read:users:info')),
      deps.invitationStore.listByUser(those('read:users'), new Date()),
      deps.groups.groupNamesByUser(those('read:users:groups')),
    ]);
    return listed.map(({ id, name, isAdmin, createdAt, lastActivityAt }) => {
      const summaries = (servers.get(id) ?? []).map((server) =>
        summaryOf(
          server,
          pages.urlOf(deps.servers.prefixOf(server)),
          server.name === '' ? deps.loads.readHere(loadKeys.server(server.id)) : undefined,
        ),
      );
      const main = summaries.find((server) => server.name === '');
      const resource = { kind: 'server', userName: name, serverName: '' } as const;
      const mayReadUser = may('read:users', { kind: 'user', name });
      const mayReadServer = may('read:servers', resource);
      const { displayName, email } = infos.get(id) ?? noInfo;
      return {
        name,
        displayName,
        email,
        leadsTo: mayReadUser ? 'user' : mayReadServer ? 'server' : undefined,
        isAdmin: isAdmin && mayReadUser,
        isInvited: (open.get(id) ?? []).some(({ purpose }) => purpose === 'invitation'),
        groups: groups.get(id),
        createdAt: mayReadUser ? createdAt : undefined,
        lastActivityAt: may('read:users:activity', { kind: 'user', name })
          ? lastActivityAt
          : undefined,
        server: mayReadServer ? (main?.state ?? 'stopped') : undefined,
        openUrl:
          main?.state === 'running' && may('access:servers', resource) ? main.url : undefined,
        mayStart: may('start:servers', resource),
        mayStop: may('delete:servers', resource),
        load: main?.load,
        runningNamedServers: summaries.filter(
          (server) =>
            server.name !== '' && (server.state === 'running' || server.state === 'starting'),
        ).length,
      };
    });
  }

  admin.get('/admin', async (ctx, who) => {
    if (listFilter(who.caller.scopes, 'list:users') === undefined) {
      // The navigation leads here, also for those who may see another part only.
      const [first] = adminTabsOf(who.caller.scopes);
      if (first === undefined) who.require('list:users');
      else return ctx.redirect(adminTabUrl(pages.urls, first));
    }
    const query = readUsersQuery(new URLSearchParams(ctx.querystring));
    const shown = usersFilterFor(who, query);
    const counts = await users.countByMark(shown);
    const knownTotal = counts[query.mark ?? 'all'];
    const page = await users.list({ ...shown, ...storeOptionsOf(query), knownTotal });
    if (page.items.length === 0 && page.total > 0) {
      const last = lastPageOf(page.total, query.size);
      return ctx.redirect(usersUrl(pages.urls, { ...query, page: last, edge: undefined }));
    }
    pages.send(
      ctx,
      adminUsersPage({
        layout: await pages.formLayoutFor(ctx),
        query,
        users: await rowsOf(page.items, who),
        total: page.total,
        borders: bordersOf(page, ({ key }) => key),
        counts,
        known: knownOfUsers(who.caller.scopes),
        acts: deps.actsOf(who),
        mayAdd: who.may('admin:users'),
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
    let created: readonly User[];
    let existing: readonly string[];
    try {
      if (names.length === 0) throw new HubError('bad_request', text`Type at least one name.`);
      ({ created, existing } = await accounts.create(who.caller, names, {
        isAdmin: form.get('admin') === 'true',
      }));
    } catch (error) {
      const isMistake =
        error instanceof HubError && (error.code === 'bad_request' || error.code === 'conflict');
      if (!isMistake) throw error;
      const layout = await pages.formLayoutFor(ctx);
      const canInvite = invitations.isUsed;
      const page = newUsersPage({
        layout,
        typedNames,
        problem: translated(error.shown.message),
        canInvite,
      });
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
          problems: existing.map(
            (name) => text`${name}: ${text`A user with this name exists already.`}`,
          ),
          lifetimeSeconds: invitationLifetimeSeconds.invitation,
        }),
      );
    }
    const added = message('{count, plural, one {# user is added.} other {# users are added.}}', {
      count: created.length,
    });
    const told = existing.length > 0 ? [added, text`The others were there already.`] : [added];
    pages.redirectWithNotice(ctx, pages.urls.admin, { kind: 'good', text: joined(told) });
  });
  admin.post(
    '/admin/links.csv',
    async (ctx, who, form) => {
      who.require('admin-ui');
      const lines = (form.get('links') ?? '').split(/\r?\n/).filter((line) => line !== '');
      const rows = lines.slice(0, mostNewUsers).map((line) => line.split('\t').slice(0, 2));
      ctx.attachment('links.csv');
      ctx.type = 'text/csv; charset=utf-8';
      ctx.set('Cache-Control', 'no-store');
      ctx.body = toCsv([
        [text`User`, text`Link`].map((each) => each.in(pages.languageOf(ctx))),
        ...rows,
      ]);
    },
    { needsRecentLogin: false },
  );
}
