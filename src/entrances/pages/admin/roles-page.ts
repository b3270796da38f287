import {
  type Role,
  type RoleAssignment,
  type RoleSubjectKind,
  roleDescription,
} from '../../../identity/rbac/role.ts';
import type { ScopeDescription } from '../../../identity/rbac/scope-descriptions.ts';
import { edgeFields } from '../../../operations/users-query.ts';
import { message, type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { adminLink } from '../elements/admin-link.ts';
import { kindLabels, kindsLabels, originWord } from '../elements/code-labels.ts';
import { actionForm, csrfField, namesField, selectField } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatNumber } from '../elements/quantity.ts';
import { scopePhrase } from '../elements/scope-labels.ts';
import { type PagingView, paging, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface AdminRolesView {
  readonly layout: FormLayoutProps;
  readonly roles: readonly (Pick<Role, 'name' | 'description' | 'scopes' | 'origin'> & {
    /** Users, groups and services to which it was given. */
    readonly holderCount: number;
  })[];
  readonly mayCreate: boolean;
}

/** The administration's list of roles. */
export function adminRolesPage({ layout, roles, mayCreate }: AdminRolesView): Html {
  const { urls } = layout;
  return adminLayout(layout, {
    title: text`Roles`,
    tab: 'roles',
    body: html`${pageHead(
      text`Roles`,
      text`A role says what its holders may do. Users, groups and services can hold several.`,
      mayCreate &&
        html`<div class="actions"><a class="button primary" href="${urls.adminGiveAccess()}">${text`Give access`}</a> <a class="button" href="${urls.adminNewRole}">${text`New role`}</a></div>`,
    )}
${table(
  text`Roles`,
  [
    {
      label: text`Name`,
      style: 'name',
      cell: ({ name }) => adminLink(layout, 'role', name),
    },
    { label: text`What it is for`, cell: roleDescription },
    { label: text`Given to`, cell: ({ name, holderCount }) => givenTo(name, holderCount) },
    { label: text`Defined by`, cell: ({ origin }) => definedBy(origin) },
  ],
  roles,
)}`,
  });
}

/** Who holds a role without having been given it. */
const impliedHolders: Readonly<Record<string, Text>> = {
  user: text`Every user`,
  admin: text`Every administrator`,
};

function givenTo(name: string, count: number): Phrase {
  const implied = impliedHolders[name];
  if (implied === undefined) return formatNumber(count);
  return count === 0 ? implied : text`${implied} and ${count} more`;
}

function definedBy(origin: string): Phrase {
  return origin === 'default' ? message('the hub', {}, { context: 'origin' }) : originWord(origin);
}

export interface AdminRoleView {
  readonly layout: FormLayoutProps;
  readonly role: Role;
  readonly allows: readonly ScopeDescription[];
  /** A page of them. */
  readonly assignments: readonly (RoleAssignment & { readonly mayTakeAway: boolean })[];
  readonly paging: PagingView;
  /** Kinds of holders to which it can be given here; none without the right. */
  readonly assignable: readonly RoleSubjectKind[];
  /** Why it cannot be given to the others. */
  readonly fixedReasons: readonly Phrase[];
  readonly mayChange: boolean;
  readonly typedKind?: string | undefined;
  readonly typedNames?: string | undefined;
  readonly problem?: Phrase | undefined;
}

/** One role: what it allows, who holds it and why. Giving it sends `kind` and `names`, taking it away `kind` and `name`. */
export function adminRolePage(view: AdminRoleView): Html {
  const { layout, role, allows, assignments, mayChange } = view;
  const { urls } = layout;
  const implied = impliedHolders[role.name];
  return adminLayout(layout, {
    title: role.name,
    tab: 'roles',
    scripts: ['complete-names.js'],
    body: html`${pageHead(
      role.name,
      html`${role.description !== '' && html`${roleDescription(role)} `}${text`Defined by ${definedBy(role.origin)}.`}`,
      mayChange &&
        html`<a class="button" href="${urls.adminRole(role.name, 'edit')}">${text`Edit`}</a> <a class="button danger" href="${urls.adminRole(role.name, 'delete')}">${text`Delete…`}</a>`,
    )}
<section class="block"><h2>${text`Permissions`}</h2>${
      allows.length === 0
        ? html`<p class="soft">${text`Nothing.`}</p>`
        : html`<ul class="list">${allows.map(
            (each) =>
              html`<li><div class="what">${scopePhrase(each)}<p class="soft"><code>${each.scope}</code></p></div></li>`,
          )}</ul>`
    }</section>
<section class="block"><h2>${text`Assigned to`}</h2>
${implied !== undefined && html`<p>${implied}.</p>`}
${assignments.length === 0 && implied === undefined && html`<p class="soft">${text`No one yet.`}</p>`}
${assignments.length > 0 && holderTable(view)}</section>
${assignForm(view)}`,
  });
}

function holderTable({ layout, role, assignments, paging: shown }: AdminRoleView): Html {
  const { urls } = layout;
  const name = ({ subjectKind, subjectName }: RoleAssignment): HtmlValue => {
    return adminLink(layout, subjectKind, subjectName);
  };
  return html`${table(
    text`Holders`,
    [
      { label: text`Name`, style: 'name', cell: name },
      { label: text`Type`, cell: ({ subjectKind }) => kindLabels[subjectKind] },
      { label: text`Assigned by`, cell: ({ origin }) => originWord(origin) },
      {
        label: text`Take away`,
        style: 'end',
        cell: ({ subjectKind, subjectName, mayTakeAway }) =>
          mayTakeAway &&
          actionForm(layout, {
            action: urls.adminRole(role.name, 'take-away'),
            label: text`Take away`,
            accessibleLabel: text`Take away the role from ${subjectName}`,
            style: 'small danger',
            fields: {
              kind: subjectKind,
              name: subjectName,
              ...edgeFields(shown.edge),
            },
          }),
      },
    ],
    assignments,
  )}${paging(shown)}`;
}

function assignForm(view: AdminRoleView): HtmlValue {
  const { layout, role, assignable, typedKind, typedNames, problem } = view;
  return html`${view.fixedReasons.map((reason) => html`<p class="soft">${reason}</p>`)}${
    assignable.length > 0 &&
    html`<section class="block"><h2>${text`Assign role to others`}</h2>
<form class="fields" method="post" action="${layout.urls.adminRole(role.name, 'assign')}">
${csrfField(layout)}
${selectField({
  name: 'kind',
  label: message('To', {}, { context: 'recipient' }),
  choices: assignable.map((kind) => ({ value: kind, label: kindsLabels[kind] })),
  value: typedKind,
})}
${namesField({ completes: 'kind', name: 'names', label: text`Names`, value: typedNames, problem, help: text`One on each line.` })}
<div class="actions"><button class="button primary">${text`Assign role`}</button></div>
</form></section>`
  }`;
}
