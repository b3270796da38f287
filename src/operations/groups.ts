import { z } from 'zod';
import type { GroupMembers } from '../identity/accounts/group-members.ts';
import { runtimeOrigin } from '../identity/rbac/role-change-store.ts';
import type { RoleStore } from '../identity/rbac/role-store.ts';
import type { GroupPages } from '../identity/users/group-pages-store.ts';
import type { Group, GroupStore } from '../identity/users/group-store.ts';
import { versionOfGroup } from '../identity/users/group-version-store.ts';
import { maxNameLength } from '../identity/users/user-name.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { accessOver } from './access.ts';
import { freeData, names } from './models.ts';
import { type ModelOf, type OperationRequest, operation, view } from './operation.ts';
import { knownOfUsers, listOptionsOf, listQuery } from './users-query.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly groups: GroupStore;
  readonly groupPages: Pick<GroupPages, 'listGroups' | 'listMembers' | 'membershipsOf'>;
  readonly groupMembers: GroupMembers;
  readonly roles: Pick<
    RoleStore,
    'namesGrantedTo' | 'heldBy' | 'list' | 'firstHolders' | 'listAssignments'
  >;
}

const groupModel = z
  .object({
    kind: z.literal('group'),
    name: z.string(),
    users: names.optional(),
    properties: freeData.optional(),
    roles: names.optional(),
  })
  .meta({ id: 'Group', description: 'A group, as far as the scopes of the caller show one.' });

const nameList = z.array(z.string().min(1).max(maxNameLength)).max(1000);
const creation = z.object({ groups: nameList.min(1), users: nameList.default([]) });
/** Names of users in a body. */
export const members = z.object({ users: nameList });
const optionalMembers = z.object({ users: nameList.default([]) }).prefault({});

/** Groups and who belongs to them. */
export const groupOperations = [
  operation({
    id: 'listGroups',
    method: 'GET',
    path: '/groups',
    tag: 'groups',
    summary: 'List groups',
    scopes: ['list:groups'],
    target: 'groups',
    isPaged: true,
    answers: { 200: { description: 'The groups.', schema: z.array(groupModel) } },
  }).handle(async ({ page, rows, may }, deps: Deps) => {
    const onlyNames = rows === 'all' ? {} : { onlyNames: [...rows.groups] };
    const { items, total } = await deps.groups.list({ ...page, ...onlyNames });
    const facts = await loadFacts(items, deps);
    return { status: 200, items: items.map((group) => present(group, facts, may)), total };
  }),
  operation({
    id: 'createGroups',
    byCommand: true,
    method: 'POST',
    path: '/groups',
    audit: ['group.create'],
    tag: 'groups',
    summary: 'Create groups',
    scopes: ['admin:groups'],
    needsRecentLogin: true,
    body: creation,
    answers: { 201: { description: 'The new groups.', schema: z.array(groupModel) } },
  }).handle(async ({ body, caller, may }, deps: Deps) => {
    const created = await deps.groupMembers.createGroups(caller, body.groups, body.users);
    const facts = await loadFacts(created, deps);
    return { status: 201, body: created.map((group) => present(group, facts, may)) };
  }),
  operation({
    id: 'getGroup',
    method: 'GET',
    path: '/groups/{group}',
    isVersioned: true,
    tag: 'groups',
    summary: 'Read a group',
    scopes: ['read:groups', 'read:groups:name', 'read:roles:groups'],
    target: 'group',
    answers: { 200: { description: 'What the caller may see.', schema: groupModel } },
  }).handle(async ({ params, may }, deps: Deps) => {
    const group = await deps.groups.getByName(params.group);
    return answer(group, await loadFacts([group], deps), may);
  }),
  operation({
    id: 'createGroup',
    method: 'POST',
    path: '/groups/{group}',
    audit: ['group.create'],
    isVersioned: true,
    tag: 'groups',
    summary: 'Create a group',
    scopes: ['admin:groups'],
    needsRecentLogin: true,
    body: optionalMembers,
    answers: { 201: { description: 'The new group.', schema: groupModel } },
  }).handle(async ({ params, body, caller, may }, deps: Deps) => {
    const created = await deps.groupMembers.createGroups(caller, [params.group], body.users);
    const [group] = created;
    if (group === undefined) throw new HubError('internal', text`No group was made.`);
    const facts = await loadFacts(created, deps);
    return { ...answer(group, facts, may), status: 201 };
  }),
  operation({
    id: 'deleteGroup',
    byCommand: true,
    method: 'DELETE',
    path: '/groups/{group}',
    audit: ['group.delete'],
    isVersioned: true,
    tag: 'groups',
    summary: 'Delete a group',
    scopes: ['delete:groups'],
    needsRecentLogin: true,
    target: 'group',
    answers: { 204: { description: 'The group is gone.' } },
  }).handle(({ params, caller, requireVersion }, { groupMembers }: Deps) =>
    groupMembers.delete(caller, params.group, requireVersion),
  ),
  operation({
    id: 'addGroupMembers',
    byCommand: true,
    method: 'POST',
    path: '/groups/{group}/users',
    audit: ['group.add_members'],
    isVersioned: true,
    tag: 'groups',
    summary: 'Add members to a group',
    scopes: ['groups'],
    needsRecentLogin: true,
    target: 'group',
    body: members,
    answers: { 200: { description: 'The group.', schema: groupModel } },
  }).handle(async ({ params, body, caller, may, requireVersion }, deps: Deps) => {
    const group = await deps.groups.getByName(params.group);
    await deps.groupMembers.add(caller, params.group, body.users, requireVersion);
    return answer(group, await loadFacts([group], deps), may);
  }),
  operation({
    id: 'removeGroupMembers',
    byCommand: true,
    method: 'DELETE',
    path: '/groups/{group}/users',
    audit: ['group.remove_members'],
    isVersioned: true,
    tag: 'groups',
    summary: 'Remove members from a group',
    scopes: ['groups'],
    needsRecentLogin: true,
    target: 'group',
    body: members,
    answers: { 200: { description: 'The group.', schema: groupModel } },
  }).handle(async ({ params, body, may, requireVersion }, deps: Deps) => {
    const group = await deps.groups.getByName(params.group);
    await deps.groupMembers.remove(params.group, body.users, requireVersion);
    return answer(group, await loadFacts([group], deps), may);
  }),
  operation({
    id: 'removeGroupMember',
    audience: 'page',
    method: 'POST',
    path: '/admin/groups/{group}/remove-member',
    audit: ['group.remove_members'],
    tag: 'groups',
    summary: 'Remove a member, and say who will add them again',
    scopes: ['groups'],
    needsRecentLogin: true,
    target: 'group',
    body: z.object({ user: z.string() }),
    answers: {
      200: {
        description: 'Who had put the user into the group.',
        schema: z.object({ origin: z.string().optional() }),
      },
    },
  }).handle(async ({ params, body }, { users, groupMembers, groupPages }: Deps) => {
    await users.getByName(body.user);
    const memberships = await groupPages.membershipsOf(body.user);
    const origin = memberships.find(({ name }) => name === params.group)?.origin;
    await groupMembers.remove(params.group, [body.user]);
    return { status: 200, body: { origin } };
  }),
  operation({
    id: 'setGroupProperties',
    method: 'PUT',
    path: '/groups/{group}/properties',
    audit: ['group.change'],
    isVersioned: true,
    tag: 'groups',
    summary: 'Replace the properties of a group',
    scopes: ['groups'],
    needsRecentLogin: true,
    target: 'group',
    body: freeData,
    answers: { 200: { description: 'The group.', schema: groupModel } },
  }).handle(async ({ params, body, may, requireVersion }, deps: Deps) => {
    await deps.groups.setProperties(params.group, body, requireVersion);
    const group = await deps.groups.getByName(params.group);
    return answer(group, await loadFacts([group], deps), may);
  }),
  view({
    id: 'viewGroups',
    byCommand: true,
    path: '/admin/groups',
    scopes: ['list:groups'],
    target: 'groups',
    query: listQuery,
  }).handle(async ({ query, rows }, { groupPages }: Pick<Deps, 'groupPages'>) => {
    const onlyNames = rows === 'all' ? undefined : [...rows.groups];
    return { query, found: await groupPages.listGroups({ ...listOptionsOf(query), onlyNames }) };
  }),
  view({
    id: 'viewGroup',
    path: '/admin/groups/{group}',
    scopes: ['read:groups'],
    target: 'group',
    query: listQuery,
  }).handle(async ({ params, query, may, caller }, { groups, groupPages, roles }: Deps) => {
    const group = await groups.getByName(params.group);
    const resource = { kind: 'group', name: group.name } as const;
    const [found, held, given, access] = await Promise.all([
      groupPages.listMembers(group.id, listOptionsOf(query)),
      may('read:roles:groups', resource) ? roles.heldBy(resource) : undefined,
      roles.listAssignments({ subjectKind: 'group', subjectName: group.name }),
      may('read:roles') ? accessOver({ kind: 'group', value: group.name }, roles) : undefined,
    ]);
    const atRuntime = given.filter(({ origin }) => origin === runtimeOrigin);
    return {
      group,
      query,
      found,
      roles: held?.map((role) => ({
        ...role,
        isOfRuntime: atRuntime.some(({ roleName }) => roleName === role.name),
      })),
      access,
      /** Whether the list of users may be asked for by group. */
      isFilterOfUsers: knownOfUsers(caller.scopes).groups,
    };
  }),
  view({
    id: 'viewGroupProperties',
    path: '/admin/groups/{group}/properties',
    scopes: ['groups'],
    target: 'group',
  }).handle(({ params }, deps: Deps) => versioned(params.group, deps)),
  view({
    id: 'viewGroupDeletion',
    path: '/admin/groups/{group}/delete',
    scopes: ['delete:groups'],
    target: 'group',
  }).handle(({ params }, deps: Deps) => versioned(params.group, deps)),
];

/** A group as it was read for a form. */
export interface VersionedGroup extends Group {
  readonly version: string;
  readonly memberCount: number;
}

/** With its version, for which all its members are read. */
async function versioned(name: string, { groups }: Pick<Deps, 'groups'>): Promise<VersionedGroup> {
  const group = await groups.getByName(name);
  const members = (await groups.memberNamesByGroup([group.name])).get(group.name) ?? [];
  return { ...group, version: versionOfGroup(group, members), memberCount: members.length };
}

/** What there is to know of some groups, by name; two queries, however many there are. */
async function loadFacts(
  listed: readonly Group[],
  { groups, roles }: Pick<Deps, 'groups' | 'roles'>,
): Promise<GroupFacts> {
  const [members, roleNames] = await Promise.all([
    groups.memberNamesByGroup(listed.map(({ name }) => name)),
    roles.namesGrantedTo(listed.map(({ name }) => ({ kind: 'group', name }))),
  ]);
  return { members, roleNames };
}

interface GroupFacts {
  readonly members: ReadonlyMap<string, readonly string[]>;
  readonly roleNames: ReadonlyMap<string, readonly string[]>;
}

/** Its version is as good as its members and properties for who guesses them. */
function answer(group: Group, facts: GroupFacts, may: OperationRequest<never>['may']) {
  const isShown = may('read:groups', { kind: 'group', name: group.name });
  const members = facts.members.get(group.name) ?? [];
  return {
    status: 200,
    body: present(group, facts, may),
    ...(isShown && { version: versionOfGroup(group, members) }),
  } as const;
}

function present(
  { name, properties }: Group,
  { members, roleNames }: GroupFacts,
  may: OperationRequest<never>['may'],
): ModelOf<typeof groupModel> {
  const resource = { kind: 'group', name } as const;
  return {
    kind: 'group',
    name,
    ...(may('read:groups', resource) && { users: members.get(name) ?? [], properties }),
    ...(may('read:roles:groups', resource) && { roles: roleNames.get(name) ?? [] }),
  };
}
