import type { Context } from 'koa';
import type { GroupMembers } from '../../accounts/group-members.ts';
import { HubError } from '../../errors.ts';
import { listFilter } from '../../rbac/access-check.ts';
import type { RoleStore } from '../../rbac/role-store.ts';
import { message, type Phrase, text, translated } from '../../texts/text.ts';
import type { GroupPages } from '../../users/group-pages-store.ts';
import type { Group, GroupStore } from '../../users/group-store.ts';
import {
  isPastLast,
  listUrl,
  pageLength,
  pagingOf,
  queryIn,
  readQuery,
} from '../elements/list-query.ts';
import { lastPageOf, type PagingView } from '../elements/paging.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import { type Admin, type AdminContext, parameter } from './admin-context.ts';
import { adminGroupPage, adminGroupsPage } from './groups-page.ts';

/** `/hub/admin/groups`: groups and who belongs to them. */
export function adminGroupRoutes(
  admin: AdminContext,
  deps: {
    readonly groups: GroupStore;
    readonly groupPages: Pick<GroupPages, 'listGroups' | 'listMembers'>;
    readonly members: GroupMembers;
    readonly roles: Pick<RoleStore, 'heldBy'>;
  },
): void {
  const { pages } = admin;
  const { groups, groupPages, members } = deps;

  async function showList(
    ctx: Context,
    who: Admin,
    failure: { readonly typedName?: string; readonly problem?: Phrase } = {},
  ): Promise<void> {
    const filter = listFilter(who.caller.scopes, 'list:groups');
    if (filter === undefined) who.require('list:groups');
    const query = readQuery(ctx);
    const found = await groupPages.listGroups({
      ...query.options,
      onlyNames: filter === undefined || filter === 'all' ? undefined : [...filter.groups],
    });
    const { items, total } = found;
    const urlOf: PagingView['urlOf'] = (page, edge) =>
      listUrl(pages.urls.adminGroups, query.search, page, edge);
    if (isPastLast(items, total)) return ctx.redirect(urlOf(lastPageOf(total, pageLength)));
    const page = adminGroupsPage({
      layout: await pages.formLayoutFor(ctx),
      groups: items,
      search: query.search,
      paging: pagingOf(query, found, ({ name }) => name, urlOf),
      mayCreate: who.may('admin:groups'),
      ...failure,
    });
    pages.send(ctx, page, failure.problem === undefined ? 200 : 400);
  }

  async function groupFor(ctx: Context, who: Admin, scope: string): Promise<Group> {
    const name = parameter(ctx, 'group');
    who.require(scope, { kind: 'group', name });
    return groups.getByName(name);
  }

  async function showGroup(
    ctx: Context,
    who: Admin,
    group: Group,
    failure: { readonly typedNames?: string; readonly problem?: Phrase } = {},
  ): Promise<void> {
    const query = readQuery(ctx);
    const resource = { kind: 'group', name: group.name } as const;
    const maySeeRoles = who.may('read:roles:groups', resource);
    const [members, roles] = await Promise.all([
      groupPages.listMembers(group.id, query.options),
      maySeeRoles ? deps.roles.heldBy(resource) : undefined,
    ]);
    const { items, total } = members;
    const urlOf: PagingView['urlOf'] = (page, edge) =>
      listUrl(pages.urls.adminGroup(group.name), query.search, page, edge);
    if (isPastLast(items, total)) return ctx.redirect(urlOf(lastPageOf(total, pageLength)));
    const page = adminGroupPage({
      layout: await pages.formLayoutFor(ctx),
      group,
      members: items,
      search: query.search,
      paging: pagingOf(query, members, ({ name }) => name, urlOf),
      roles: roles?.map(({ name, description }) => ({ name, description })),
      may: {
        changeMembers: who.may('groups', resource),
        delete: who.may('delete:groups', resource),
        listUsers: listFilter(who.caller.scopes, 'list:users') !== undefined,
      },
      ...failure,
    });
    pages.send(ctx, page, failure.problem === undefined ? 200 : 400);
  }

  admin.get('/admin/groups', (ctx, who) => showList(ctx, who));

  admin.post('/admin/groups', async (ctx, who, form) => {
    who.require('admin:groups');
    const typedName = (form.get('name') ?? '').trim();
    try {
      const { name } = await groups.create({ name: typedName, origin: 'api' });
      const notice = { kind: 'good', text: text`The group ${name} is made.` } as const;
      pages.redirectWithNotice(ctx, pages.urls.adminGroup(name), notice);
    } catch (error) {
      if (!isMistake(error)) throw error;
      await showList(ctx, who, { typedName, problem: translated(error.shown.message) });
    }
  });

  admin.get('/admin/groups/:group', async (ctx, who) =>
    showGroup(ctx, who, await groupFor(ctx, who, 'read:groups')),
  );

  admin.post('/admin/groups/:group/add-members', async (ctx, who, form) => {
    const group = await groupFor(ctx, who, 'groups');
    const typedNames = form.get('names') ?? '';
    const names = typedNames.split(/[\r\n,]+/).flatMap((name) => name.trim() || []);
    try {
      if (names.length === 0) throw new HubError('bad_request', text`Type at least one name.`);
      await members.add(who.caller, group.name, names);
    } catch (error) {
      if (!isMistake(error)) throw error;
      return showGroup(ctx, who, group, { typedNames, problem: translated(error.shown.message) });
    }
    const [first = ''] = names;
    const done = message('{count, plural, one {{first} is added.} other {# users are added.}}', {
      count: names.length,
      first,
    });
    pages.redirectWithNotice(ctx, pages.urls.adminGroup(group.name), { kind: 'good', text: done });
  });

  admin.post('/admin/groups/:group/remove-member', async (ctx, who, form) => {
    const group = await groupFor(ctx, who, 'groups');
    const name = form.get('name') ?? '';
    await members.remove(group.name, [name]);
    const done = text`${name} is no longer in this group.`;
    // Back to the page of the list on which the button stood.
    const { search, page, edge } = queryIn(form);
    const url = listUrl(pages.urls.adminGroup(group.name), search, page, edge);
    pages.redirectWithNotice(ctx, url, { kind: 'good', text: done });
  });

  admin.get('/admin/groups/:group/delete', async (ctx, who) => {
    const group = await groupFor(ctx, who, 'delete:groups');
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: text`Delete the group ${group.name}?`,
      consequences: [
        text`Its members lose what they may do through it. The users themselves stay.`,
      ],
      label: text`Delete group`,
      action: pages.urls.adminGroup(group.name, 'delete'),
      cancelUrl: pages.urls.adminGroup(group.name),
    });
    pages.send(ctx, page);
  });

  admin.post('/admin/groups/:group/delete', async (ctx, who) => {
    const group = await groupFor(ctx, who, 'delete:groups');
    await groups.delete(group.name);
    const done = text`The group ${group.name} is deleted.`;
    pages.redirectWithNotice(ctx, pages.urls.adminGroups, { kind: 'good', text: done });
  });
}

function isMistake(error: unknown): error is HubError {
  return error instanceof HubError && (error.code === 'bad_request' || error.code === 'conflict');
}
