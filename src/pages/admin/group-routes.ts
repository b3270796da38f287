import type { Context } from 'koa';
import type { GroupMembers } from '../../accounts/group-members.ts';
import { HubError } from '../../errors.ts';
import { listFilter } from '../../rbac/access-check.ts';
import type { Group, GroupStore } from '../../users/group-store.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import { type Admin, type AdminContext, parameter } from './admin-context.ts';
import { adminGroupPage, adminGroupsPage } from './groups-page.ts';

const mostGroups = 1000;

/** `/hub/admin/groups`: groups and who belongs to them. */
export function adminGroupRoutes(
  admin: AdminContext,
  deps: { readonly groups: GroupStore; readonly members: GroupMembers },
): void {
  const { pages } = admin;
  const { groups, members } = deps;

  async function showList(
    ctx: Context,
    who: Admin,
    failure: { readonly typedName?: string; readonly problem?: string } = {},
  ): Promise<void> {
    const filter = listFilter(who.caller.scopes, 'list:groups');
    if (filter === undefined) who.require('list:groups');
    const { items } = await groups.list({
      offset: 0,
      limit: mostGroups,
      ...(filter === undefined || filter === 'all' ? {} : { onlyNames: [...filter.groups] }),
    });
    const memberships = await groups.memberships();
    const page = adminGroupsPage({
      layout: await pages.formLayoutFor(ctx),
      groups: items.map(({ name, origin }) => ({
        name,
        origin,
        memberCount: memberships.get(name)?.size ?? 0,
      })),
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
    group: Group,
    failure: { readonly typedNames?: string; readonly problem?: string } = {},
  ): Promise<void> {
    const page = adminGroupPage({
      layout: await pages.formLayoutFor(ctx),
      group,
      members: await groups.memberNames(group.name),
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
      const notice = { kind: 'good', text: `The group ${name} is made.` } as const;
      pages.redirectWithNotice(ctx, pages.urls.adminGroup(name), notice);
    } catch (error) {
      if (!isMistake(error)) throw error;
      await showList(ctx, who, { typedName, problem: error.message });
    }
  });

  admin.get('/admin/groups/:group', async (ctx, who) =>
    showGroup(ctx, await groupFor(ctx, who, 'read:groups')),
  );

  admin.post('/admin/groups/:group/add-members', async (ctx, who, form) => {
    const group = await groupFor(ctx, who, 'groups');
    const typedNames = form.get('names') ?? '';
    const names = typedNames.split(/[\r\n,]+/).flatMap((name) => name.trim() || []);
    try {
      if (names.length === 0) throw new HubError('bad_request', 'Type at least one name.');
      await members.add(who.caller, group.name, names);
    } catch (error) {
      if (!isMistake(error)) throw error;
      return showGroup(ctx, group, { typedNames, problem: error.message });
    }
    const text = names.length === 1 ? `${names[0]} is added.` : `${names.length} users are added.`;
    pages.redirectWithNotice(ctx, pages.urls.adminGroup(group.name), { kind: 'good', text });
  });

  admin.post('/admin/groups/:group/remove-member', async (ctx, who, form) => {
    const group = await groupFor(ctx, who, 'groups');
    const name = form.get('name') ?? '';
    await members.remove(group.name, [name]);
    const text = `${name} is no longer in this group.`;
    pages.redirectWithNotice(ctx, pages.urls.adminGroup(group.name), { kind: 'good', text });
  });

  admin.get('/admin/groups/:group/delete', async (ctx, who) => {
    const group = await groupFor(ctx, who, 'delete:groups');
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: `Delete the group ${group.name}?`,
      consequences: ['Its members lose what they may do through it. The users themselves stay.'],
      label: 'Delete group',
      action: pages.urls.adminGroup(group.name, 'delete'),
      cancelUrl: pages.urls.adminGroup(group.name),
    });
    pages.send(ctx, page);
  });

  admin.post('/admin/groups/:group/delete', async (ctx, who) => {
    const group = await groupFor(ctx, who, 'delete:groups');
    await groups.delete(group.name);
    const text = `The group ${group.name} is deleted.`;
    pages.redirectWithNotice(ctx, pages.urls.adminGroups, { kind: 'good', text });
  });
}

function isMistake(error: unknown): error is HubError {
  return error instanceof HubError && (error.code === 'bad_request' || error.code === 'conflict');
}
