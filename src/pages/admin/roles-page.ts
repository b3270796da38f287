import type { Role, RoleAssignment, RoleSubjectKind } from '../../rbac/role.ts';
import type { ScopeDescription } from '../../rbac/scope-descriptions.ts';
import type { Phrase } from '../../texts/text.ts';
import { actionForm, csrfField, selectField, textArea } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { scopePhrase } from '../elements/scope-words.ts';
import { table } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';
import { originWord } from './origin-word.ts';

export interface AdminRolesView {
  readonly layout: FormLayoutProps;
  readonly roles: readonly (Pick<Role, 'name' | 'description' | 'origin'> & {
    /** Users, groups and services to which it was given. */
    readonly holderCount: number;
  })[];
  readonly mayCreate: boolean;
}

/** The administration's list of roles. */
export function adminRolesPage({ layout, roles, mayCreate }: AdminRolesView): Html {
  const { urls } = layout;
  return adminLayout(layout, {
    title: 'Roles',
    tab: 'roles',
    body: html`${pageHead(
      'Roles',
      'A role says what its holders may do. Users, groups and services can hold several.',
      mayCreate && html`<a class="button primary" href="${urls.adminNewRole}">New role</a>`,
    )}
${table(
  'Roles',
  [
    {
      label: 'Name',
      style: 'name',
      cell: ({ name }) => html`<a href="${urls.adminRole(name)}">${name}</a>`,
    },
    { label: 'What it is for', cell: ({ description }) => description },
    { label: 'Given to', cell: ({ name, holderCount }) => givenTo(name, holderCount) },
    { label: 'Defined by', cell: ({ origin }) => definedBy(origin) },
  ],
  roles,
)}`,
  });
}

/** Who holds a role without having been given it. */
const impliedHolders: Readonly<Record<string, string>> = {
  user: 'Every user',
  admin: 'Every administrator',
};

function givenTo(name: string, count: number): string {
  const implied = impliedHolders[name];
  const given = count.toLocaleString('en');
  if (implied === undefined) return given;
  return count === 0 ? implied : `${implied} and ${given} more`;
}

function definedBy(origin: string): Phrase {
  return origin === 'default' ? 'the hub' : originWord(origin);
}

export interface AdminRoleView {
  readonly layout: FormLayoutProps;
  readonly role: Role;
  readonly allows: readonly ScopeDescription[];
  readonly assignments: readonly (RoleAssignment & { readonly mayTakeAway: boolean })[];
  /** Kinds of holders to which it can be given here; none without the right. */
  readonly assignable: readonly RoleSubjectKind[];
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
    body: html`${pageHead(
      role.name,
      html`${role.description !== '' && `${role.description} `}Defined by ${definedBy(role.origin)}.`,
      mayChange &&
        html`<a class="button" href="${urls.adminRole(role.name, 'edit')}">Edit</a> <a class="button danger" href="${urls.adminRole(role.name, 'delete')}">Delete…</a>`,
    )}
<section class="block"><h2>What it allows</h2>${
      allows.length === 0
        ? html`<p class="soft">Nothing.</p>`
        : html`<ul class="list">${allows.map(
            (each) =>
              html`<li><div class="what">${scopePhrase(each)}<p class="soft"><code>${each.scope}</code></p></div></li>`,
          )}</ul>`
    }</section>
<section class="block"><h2>Who holds it</h2>
${implied !== undefined && html`<p>${implied}.</p>`}
${assignments.length === 0 && implied === undefined && html`<p class="soft">No one yet.</p>`}
${assignments.length > 0 && holderTable(view)}</section>
${assignForm(view)}`,
  });
}

const kindWords = { user: 'User', group: 'Group', service: 'Service' } as const;

function holderTable({ layout, role, assignments }: AdminRoleView): Html {
  const { urls } = layout;
  const name = ({ subjectKind, subjectName }: RoleAssignment): HtmlValue => {
    if (subjectKind === 'service') return subjectName;
    const url = subjectKind === 'user' ? urls.adminUser(subjectName) : urls.adminGroup(subjectName);
    return html`<a href="${url}">${subjectName}</a>`;
  };
  return table(
    'Holders',
    [
      { label: 'Name', style: 'name', cell: name },
      { label: 'Is a', cell: ({ subjectKind }) => kindWords[subjectKind] },
      { label: 'Given by', cell: ({ origin }) => originWord(origin) },
      {
        label: 'Take away',
        style: 'end',
        cell: ({ subjectKind, subjectName, mayTakeAway }) =>
          mayTakeAway &&
          actionForm(layout, {
            action: urls.adminRole(role.name, 'take-away'),
            label: 'Take away',
            accessibleLabel: `Take away the role from ${subjectName}`,
            style: 'small danger',
            fields: { kind: subjectKind, name: subjectName },
          }),
      },
    ],
    assignments,
  );
}

function assignForm(view: AdminRoleView): HtmlValue {
  const { layout, role, assignable, typedKind, typedNames, problem } = view;
  return (
    assignable.length > 0 &&
    html`<section class="block"><h2>Give it to others</h2>
<form class="fields" method="post" action="${layout.urls.adminRole(role.name, 'assign')}">
${csrfField(layout)}
${selectField({
  name: 'kind',
  label: 'To',
  choices: assignable.map((kind) => ({ value: kind, label: `${kindWords[kind]}s` })),
  value: typedKind,
})}
${textArea({ name: 'names', label: 'Names', value: typedNames, problem, help: 'One on each line.' })}
<div class="actions"><button class="button primary">Give role</button></div>
</form></section>`
  );
}
