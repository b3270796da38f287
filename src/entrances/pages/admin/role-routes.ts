import { holderKey } from '../../../identity/rbac/role-store.ts';
import { HubError } from '../../../platform/errors.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { listUrl, pagesOf, queryIn } from '../elements/list-query.ts';
import type { BoundPages, Changes } from '../forms/binding.ts';
import { bindDeletion } from '../forms/deletion.ts';
import { namesIn } from '../forms/names-in.ts';
import { adminRoleFormPage, roleFacts } from './role-form-page.ts';
import { adminRolePage, adminRolesPage } from './roles-page.ts';

/** `/hub/admin/roles`: roles, what they allow, and who holds them. */
export function adminRoleRoutes(bound: BoundPages): void {
  const { page, form } = bound;
  const { urls } = bound.pages;

  page('/admin/roles', 'viewRoles', ({ layout, model, may }) =>
    adminRolesPage({ layout, roles: model, mayCreate: may('createRole') }),
  );

  const showRole = page('/admin/roles/{role}', 'viewRole', ({ layout, model, may, failure }) => {
    const { role, allows, found, changeableKinds, fixedReasons, isChangeable } = model;
    const assignable = may('assignRole') ? changeableKinds : [];
    return adminRolePage({
      layout,
      role,
      allows,
      assignments: found.items.map((each) => ({
        ...each,
        mayTakeAway: each.isOfRuntime && assignable.includes(each.subjectKind),
      })),
      paging: pagesOf(urls.adminRole(role.name), model, holderKey),
      assignable,
      fixedReasons: may('assignRole') ? fixedReasons : [],
      mayChange: may('changeRole') && isChangeable,
      typedKind: failure?.sent.get('kind') ?? undefined,
      typedNames: failure?.sent.get('names') ?? undefined,
      problem: failure?.problem,
    });
  });

  const showNew = page('/admin/new-role', 'viewNewRole', ({ layout, model, failure }) => {
    const typed = failure && readForm(failure.sent);
    return adminRoleFormPage({
      layout,
      name: failure?.sent.get('name')?.trim(),
      description: typed?.description ?? '',
      ...choicesOf(model.choices, typed?.scopes ?? []),
      problem: failure?.problem,
    });
  });

  form('/admin/new-role', 'createRole', {
    params: (sent) => ({ role: (sent.get('name') ?? '').trim() }),
    body: readForm,
    done: ({ params: { role = '' } }) => ({
      to: urls.adminRole(role),
      say: text`The role ${role} is made.`,
    }),
    again: showNew,
  });

  const showEdit = page(
    '/admin/roles/{role}/edit',
    'viewRoleForm',
    ({ layout, model, failure }) => {
      const { role, version, choices } = model;
      const typed = failure === undefined ? role : readForm(failure.sent);
      return adminRoleFormPage({
        layout,
        existing: { name: role.name, version },
        description: typed.description,
        ...choicesOf(choices, typed.scopes),
        problem: failure?.problem,
        changed: failure?.changed && { by: failure.changed.by, now: roleFacts(role) },
      });
    },
  );

  form('/admin/roles/{role}/edit', 'changeRole', {
    body: readForm,
    done: ({ params: { role = '' } }) => ({
      to: urls.adminRole(role),
      say: text`The role ${role} is changed.`,
    }),
    changes: roleChanges,
    again: showEdit,
  });

  form('/admin/roles/{role}/assign', 'assignRole', {
    body: (sent) => membersOf(sent.get('kind'), namesIn(sent)),
    done({ params: { role = '' }, sent }) {
      const names = namesIn(sent);
      const say = message(
        '{count, plural, one {{first} now holds the role.} other {# now hold the role.}}',
        { count: names.length, first: names[0] ?? '' },
      );
      return { to: urls.adminRole(role), say };
    },
    again: showRole,
  });

  form('/admin/roles/{role}/take-away', 'takeRoleAway', {
    body: (sent) => membersOf(sent.get('kind'), [sent.get('name') ?? '']),
    done({ params: { role = '' }, sent }) {
      const { edge } = queryIn(sent);
      const returnTo = bound.pages.ownPathOf(sent.get('return_to') ?? '');
      return {
        to: returnTo ?? listUrl(urls.adminRole(role), '', edge),
        say: text`${sent.get('name') ?? ''} no longer holds the role.`,
      };
    },
  });

  bindDeletion(bound, '/admin/roles/{role}/delete', {
    view: 'viewRoleForm',
    operation: 'deleteRole',
    question: ({ role: { name } }) => ({
      title: text`Delete the role ${name}?`,
      consequences: [text`All who hold it lose at once what they may do by it alone.`],
      label: text`Delete role`,
      action: urls.adminRole(name, 'delete'),
      cancelUrl: urls.adminRole(name),
    }),
    versioned: ({ role, version }) => ({ version, now: roleFacts(role) }),
    changes: roleChanges,
    done: ({ role = '' }) => ({ to: urls.adminRoles, say: text`The role ${role} is deleted.` }),
  });
}

/** What makes another version of a role. */
function roleChanges({ role }: Readonly<Record<string, string>>): Changes {
  return { actions: ['role.save'], target: role };
}

/** Scopes to tick, and those that are none of them. */
function choicesOf(
  offered: readonly {
    readonly scope: string;
    readonly description: Phrase;
    readonly isHeld: boolean;
  }[],
  scopes: readonly string[],
) {
  const chosen = new Set(scopes);
  const choices = offered
    .filter(({ scope, isHeld }) => isHeld || chosen.has(scope))
    .map(({ scope, description }) => ({ scope, description, isChosen: chosen.has(scope) }));
  const known = new Set(choices.map(({ scope }) => scope));
  return { choices, filtered: scopes.filter((scope) => !known.has(scope)).join('\n') };
}

function readForm(sent: URLSearchParams): { description: string; scopes: string[] } {
  const filtered = (sent.get('filtered') ?? '')
    .split(/[\r\n]+/)
    .flatMap((line) => line.trim() || []);
  const description = (sent.get('description') ?? '').trim();
  return { description, scopes: [...new Set([...sent.getAll('scope'), ...filtered])] };
}

/** Those to whom a role is given, by what was chosen in a form. Throws `bad_request` where nothing was. */
export function membersOf(kind: string | null, names: string[]) {
  if (kind === 'user') return { users: names };
  if (kind === 'group') return { groups: names };
  if (kind === 'service') return { services: names };
  throw new HubError('bad_request', text`Choose whether users, groups or services get it.`);
}
