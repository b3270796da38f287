import type { Context } from 'koa';
import type { GroupMembers } from '../../accounts/group-members.ts';
import { HubError } from '../../errors.ts';
import { listFilter } from '../../rbac/access-check.ts';
import type { RoleStore } from '../../rbac/role-store.ts';
import { message, type Phrase, text, translated } from '../../texts/text.ts';
import type { GroupPages } from '../../users/group-pages-store.ts';
import type { Group, GroupStore } from '../../users/group-store.ts';
import { versionOfGroup } from '../../users/group-version-store.ts';
import type { ChangedMeanwhile } from '../elements/changed-meanwhile.ts';
import {
  isPastLast,
  listUrl,
  pageLength,
  pagingOf,
  queryIn,
  readQuery,
} from '../elements/list-query.ts';
import { lastPageOf, type PagingView } from '../elements/paging.ts';
import {
  type Admin,
  type AdminContext,
  isOfFormerVersion,
  parameter,
  versionIn,
} from './admin-context.ts';
import { addDeletion } from './deletion-routes.ts';
import {
  type AdminGroupPropertiesView,
  adminGroupPropertiesPage,
  groupFacts,
  type VersionedGroup,
} from './group-properties-page.ts';
import { adminGroupPage, adminGroupsPage } from './groups-page.ts';
import { originOfMember, removalNotice } from './removed-member.ts';
import { knownOfUsers } from './users-filter.ts';

/** `/hub/admin/groups`: groups and who belongs to them. */
export function adminGroupRoutes(
  admin: AdminContext,
  deps: {
    readonly groups: GroupStore;
    readonly groupPages: Pick<GroupPages, 'listGroups' | 'listMembers' | 'membershipsOf'>;
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
        // Filtered by the group.
        listUsers:
          listFilter(who.caller.scopes, 'list:users') !== undefined &&
          knownOfUsers(who.caller.scopes).groups,
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
    const origin = await originOfMember(deps.groupPages, name, group.name);
    await members.remove(group.name, [name]);
    const done = text`${name} is no longer in this group.`;
    // Back to the page of the list on which the button stood.
    const { search, page, edge } = queryIn(form);
    const url = listUrl(pages.urls.adminGroup(group.name), search, page, edge);
    pages.redirectWithNotice(ctx, url, removalNotice(done, origin));
  });

  /** With its version, for which all its members are read. */
  async function versionedGroup(ctx: Context, who: Admin, scope: string): Promise<VersionedGroup> {
    const group = await groupFor(ctx, who, scope);
    const members = (await groups.memberNamesByGroup([group.name])).get(group.name) ?? [];
    return { ...group, version: versionOfGroup(group, members), memberCount: members.length };
  }

  async function changeOf(who: Admin, group: VersionedGroup): Promise<ChangedMeanwhile> {
    return { by: await admin.lastActor(who, groupChanges, group.name), now: groupFacts(group) };
  }

  async function showProperties(
    ctx: Context,
    group: VersionedGroup,
    failure: Pick<AdminGroupPropertiesView, 'typed' | 'problem' | 'changed'> = {},
  ): Promise<void> {
    const layout = await pages.formLayoutFor(ctx);
    const page = adminGroupPropertiesPage({ layout, group, ...failure });
    pages.send(ctx, page, failure.typed === undefined ? 200 : 400);
  }

  admin.get('/admin/groups/:group/properties', async (ctx, who) => {
    await showProperties(ctx, await versionedGroup(ctx, who, 'groups'));
  });

  admin.post('/admin/groups/:group/properties', async (ctx, who, form) => {
    const group = await versionedGroup(ctx, who, 'groups');
    const typed = form.get('properties') ?? '';
    try {
      await groups.setProperties(group.name, readProperties(typed), versionIn(form));
    } catch (error) {
      if (isOfFormerVersion(error)) {
        return showProperties(ctx, group, { typed, changed: await changeOf(who, group) });
      }
      if (!isMistake(error)) throw error;
      return showProperties(ctx, group, { typed, problem: translated(error.shown.message) });
    }
    const done = text`The properties of ${group.name} are changed.`;
    pages.redirectWithNotice(ctx, pages.urls.adminGroup(group.name), { kind: 'good', text: done });
  });

  addDeletion(admin, '/admin/groups/:group/delete', {
    find: (ctx, who) => versionedGroup(ctx, who, 'delete:groups'),
    versionOf: ({ version }) => version,
    question: ({ name }) => ({
      title: text`Delete the group ${name}?`,
      consequences: [
        text`Its members lose what they may do through it. The users themselves stay.`,
      ],
      label: text`Delete group`,
      action: pages.urls.adminGroup(name, 'delete'),
      cancelUrl: pages.urls.adminGroup(name),
    }),
    changeOf,
    async delete(_who, { name }, requireVersion) {
      await groups.delete(name, requireVersion);
    },
    done: ({ name }) => ({
      url: pages.urls.adminGroups,
      text: text`The group ${name} is deleted.`,
    }),
  });
}

/** Deeds that make another version of a group. */
const groupChanges = [
  'group.create',
  'group.change',
  'group.add_members',
  'group.remove_members',
] as const;

/** The properties as they are typed: one JSON object. */
function readProperties(typed: string): Record<string, unknown> {
  let properties: unknown;
  try {
    properties = JSON.parse(typed.trim() === '' ? '{}' : typed);
  } catch (error) {
    const reason = error instanceof Error ? error.message : '';
    throw new HubError('bad_request', text`This is not JSON: ${reason}`);
  }
  if (typeof properties === 'object' && properties !== null && !Array.isArray(properties)) {
    return { ...properties };
  }
  throw new HubError(
    'bad_request',
    text`This is not a JSON object. Write names and values in braces: ${'{"quota": 10}'}`,
  );
}

function isMistake(error: unknown): error is HubError {
  return error instanceof HubError && (error.code === 'bad_request' || error.code === 'conflict');
}
