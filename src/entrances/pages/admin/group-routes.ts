import { HubError } from '../../../platform/errors.ts';
import { requireBoundedDepth } from '../../../platform/http/body.ts';
import { message, text } from '../../../platform/texts/text.ts';
import { listUrl, pagesOf, queryIn } from '../elements/list-query.ts';
import type { BoundPages, Changes } from '../forms/binding.ts';
import { bindDeletion } from '../forms/deletion.ts';
import { namesIn } from '../forms/names-in.ts';
import { accessViewOf } from './access-routes.ts';
import { adminGroupPropertiesPage, groupFacts } from './group-properties-page.ts';
import { adminGroupPage, adminGroupsPage } from './groups-page.ts';
import { removalNotice } from './removed-member.ts';

/** `/hub/admin/groups`: groups and who belongs to them. */
export function adminGroupRoutes(bound: BoundPages): void {
  const { page, form } = bound;
  const { urls } = bound.pages;

  const showGroups = page('/admin/groups', 'viewGroups', ({ layout, model, may, failure }) =>
    adminGroupsPage({
      layout,
      groups: model.found.items,
      search: model.query.search,
      paging: pagesOf(urls.adminGroups, model, ({ name }) => name),
      mayCreate: may('createGroups'),
      typedName: failure?.sent.get('name')?.trim(),
      problem: failure?.problem,
    }),
  );

  form('/admin/groups', 'createGroups', {
    body: (sent) => ({ groups: [sent.get('name') ?? ''] }),
    done: ({ result: [group] }) => ({
      to: urls.adminGroup(group?.name ?? ''),
      say: text`The group ${group?.name ?? ''} is made.`,
    }),
    again: showGroups,
  });

  const showGroup = page('/admin/groups/{group}', 'viewGroup', ({ model, may, ...shown }) => {
    const { layout, failure } = shown;
    const { group, query, found, roles, isFilterOfUsers } = model;
    return adminGroupPage({
      layout,
      group,
      members: found.items,
      search: query.search,
      paging: pagesOf(urls.adminGroup(group.name), model, ({ name }) => name),
      roles: roles?.map((role) => ({
        ...role,
        mayTakeAway: role.isOfRuntime && may('takeRoleAway', { role: role.name }),
      })),
      access: accessViewOf(model.access, {
        may,
        giveUrl: urls.adminGiveAccess({ group: group.name }),
      }),
      may: {
        changeMembers: may('addGroupMembers'),
        delete: may('deleteGroup'),
        listUsers: may('viewUsers') && isFilterOfUsers,
      },
      typedNames: failure?.sent.get('names') ?? undefined,
      problem: failure?.problem,
    });
  });

  form('/admin/groups/{group}/add-members', 'addGroupMembers', {
    body: (sent) => ({ users: namesIn(sent) }),
    done({ params: { group = '' }, sent }) {
      const names = namesIn(sent);
      const say = message('{count, plural, one {{first} is added.} other {# users are added.}}', {
        count: names.length,
        first: names[0] ?? '',
      });
      return { to: urls.adminGroup(group), say };
    },
    again: showGroup,
  });

  form('/admin/groups/{group}/remove-member', 'removeGroupMember', {
    body: (sent) => ({ user: sent.get('name') ?? '' }),
    done({ params: { group = '' }, sent, result: { origin } }) {
      const { kind, text: say } = removalNotice(
        text`${sent.get('name') ?? ''} is no longer in this group.`,
        origin,
      );
      // Back to the page of the list on which the button stood.
      const { search, edge } = queryIn(sent);
      return { to: listUrl(urls.adminGroup(group), search, edge), say, kind };
    },
  });

  const showProperties = page(
    '/admin/groups/{group}/properties',
    'viewGroupProperties',
    ({ layout, model: group, failure }) =>
      adminGroupPropertiesPage({
        layout,
        group,
        typed: failure?.sent.get('properties') ?? undefined,
        problem: failure?.problem,
        changed: failure?.changed && { by: failure.changed.by, now: groupFacts(group) },
      }),
  );

  form('/admin/groups/{group}/properties', 'setGroupProperties', {
    body: (sent) => readProperties(sent.get('properties') ?? ''),
    done: ({ params: { group = '' } }) => ({
      to: urls.adminGroup(group),
      say: text`The properties of ${group} are changed.`,
    }),
    changes: groupChanges,
    again: showProperties,
  });

  bindDeletion(bound, '/admin/groups/{group}/delete', {
    view: 'viewGroupDeletion',
    operation: 'deleteGroup',
    question: ({ name }) => ({
      title: text`Delete the group ${name}?`,
      consequences: [
        text`Its members lose what they may do through it. The users themselves stay.`,
      ],
      label: text`Delete group`,
      action: urls.adminGroup(name, 'delete'),
      cancelUrl: urls.adminGroup(name),
    }),
    changes: groupChanges,
    versioned: (group) => ({ version: group.version, now: groupFacts(group) }),
    done: ({ group = '' }) => ({
      to: urls.adminGroups,
      say: text`The group ${group} is deleted.`,
    }),
  });
}

/** What makes another version of a group. */
function groupChanges({ group }: Readonly<Record<string, string>>): Changes {
  return {
    actions: ['group.create', 'group.change', 'group.add_members', 'group.remove_members'],
    target: group,
  };
}

/** The properties as they are typed: one JSON object. */
function readProperties(typed: string): Record<string, unknown> {
  let properties: unknown;
  try {
    properties = JSON.parse(typed.trim() === '' ? '{}' : typed);
  } catch (error) {
    const reason = error instanceof Error ? error.message : '';
    throw new HubError('bad_request', text`This is not JSON: ${reason}`);
  }
  requireBoundedDepth(properties);
  if (typeof properties === 'object' && properties !== null && !Array.isArray(properties)) {
    return { ...properties };
  }
  throw new HubError(
    'bad_request',
    text`This is not a JSON object. Write names and values in braces: ${'{"quota": 10}'}`,
  );
}
