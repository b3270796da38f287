import { z } from 'zod';
import type { GroupMembers } from '../accounts/group-members.ts';
import { HubError } from '../errors.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { Group, GroupStore } from '../users/group-store.ts';
import { versionOfGroup } from '../users/group-version-store.ts';
import { longestName } from '../users/user-name.ts';
import { freeData, names } from './models.ts';
import { type ModelOf, type OperationRequest, operation } from './operation.ts';

interface Deps {
  readonly groups: GroupStore;
  readonly groupMembers: GroupMembers;
  readonly roles: Pick<RoleStore, 'namesHeldBy'>;
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

const nameList = z.array(z.string().min(1).max(longestName)).max(1000);
const creation = z.object({ groups: nameList.min(1), users: nameList.default([]) });
const members = z.object({ users: nameList });
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
    if (group === undefined) throw new HubError('internal', 'No group was made.');
    const facts = await loadFacts(created, deps);
    return { ...answer(group, facts, may), status: 201 };
  }),
  operation({
    id: 'deleteGroup',
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
  }).handle(async ({ params, requireVersion }, { groups }: Deps) => {
    await groups.getByName(params.group);
    await groups.delete(params.group, requireVersion);
    return { status: 204 };
  }),
  operation({
    id: 'addGroupMembers',
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
];

/** What there is to know of some groups, by name; two queries, however many there are. */
async function loadFacts(
  listed: readonly Group[],
  { groups, roles }: Pick<Deps, 'groups' | 'roles'>,
): Promise<GroupFacts> {
  const [members, roleNames] = await Promise.all([
    groups.memberNamesByGroup(listed.map(({ name }) => name)),
    roles.namesHeldBy(listed.map(({ name }) => ({ kind: 'group', name }))),
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
