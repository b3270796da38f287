import { actionForm, csrfField, textArea, textField } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatCount } from '../elements/quantity.ts';
import { table } from '../elements/table.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';
import { originWord } from './origin-word.ts';

export interface AdminGroupsView {
  readonly layout: FormLayoutProps;
  readonly groups: readonly {
    readonly name: string;
    readonly memberCount: number;
    readonly origin: string;
  }[];
  readonly typedName?: string | undefined;
  readonly problem?: string | undefined;
}

/** The administration's list of groups, with the form that makes one: `name`. */
export function adminGroupsPage({ layout, groups, typedName, problem }: AdminGroupsView): Html {
  const { urls } = layout;
  return adminLayout(layout, {
    title: 'Groups',
    tab: 'groups',
    body: html`${pageHead('Groups', 'Roles and access can be given to a group instead of to each user.')}
<form class="inline-form" method="post" action="${urls.adminGroups}">
${csrfField(layout)}
${textField({ name: 'name', label: 'Name of a new group', value: typedName, problem, autocomplete: 'off', isLiteral: true, maxLength: 255 })}
<button class="button primary">Create group</button>
</form>
<section class="block">${
      groups.length === 0
        ? html`<p class="empty">There are no groups yet.</p>`
        : table(
            'Groups',
            [
              {
                label: 'Name',
                style: 'name',
                cell: ({ name }) => html`<a href="${urls.adminGroup(name)}">${name}</a>`,
              },
              { label: 'Members', cell: ({ memberCount }) => memberCount.toLocaleString('en') },
              { label: 'Managed by', cell: ({ origin }) => originWord(origin) },
            ],
            groups,
          )
    }</section>`,
  });
}

export interface AdminGroupView {
  readonly layout: FormLayoutProps;
  readonly group: { readonly name: string; readonly origin: string };
  readonly members: readonly string[];
  readonly typedNames?: string | undefined;
  readonly problem?: string | undefined;
}

/** One group with its members. Adding sends `names`, removing `name`. */
export function adminGroupPage({
  layout,
  group,
  members,
  typedNames,
  problem,
}: AdminGroupView): Html {
  const { urls } = layout;
  return adminLayout(layout, {
    title: group.name,
    tab: 'groups',
    body: html`${pageHead(group.name, `${formatCount(members.length, 'member')}, managed by ${originWord(group.origin)}`, html`<a class="button danger" href="${urls.adminGroup(group.name, 'delete')}">Delete group…</a>`)}
<form class="fields" method="post" action="${urls.adminGroup(group.name, 'add-members')}">
${csrfField(layout)}
${textArea({ name: 'names', label: 'Add members', value: typedNames, problem, help: 'User names, one on each line.' })}
<div class="actions"><button class="button primary">Add to group</button></div>
</form>
<section class="block"><h2>Members</h2>${
      members.length === 0
        ? html`<p class="soft">No members yet.</p>`
        : html`<ul class="list">${members.map(
            (name) =>
              html`<li><div class="what"><a href="${urls.adminUser(name)}">${name}</a></div>${actionForm(
                layout,
                {
                  action: urls.adminGroup(group.name, 'remove-member'),
                  label: 'Remove',
                  accessibleLabel: `Remove ${name} from the group`,
                  style: 'small danger',
                  fields: { name },
                },
              )}</li>`,
          )}</ul>`
    }</section>`,
  });
}
