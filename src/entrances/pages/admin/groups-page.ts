import { type Role, roleDescription } from '../../../identity/rbac/role.ts';
import type { ListedGroup, Membership } from '../../../identity/users/group-pages-store.ts';
import { edgeFields } from '../../../operations/users-query.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { adminLink } from '../elements/admin-link.ts';
import { originWord } from '../elements/code-labels.ts';
import { actionForm, csrfField, namesField, textField } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatNumber } from '../elements/quantity.ts';
import { searchForm } from '../elements/search-form.ts';
import { type PagingView, paging, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { type AccessView, accessSection, takeAwayForm } from './access-page.ts';

export interface AdminGroupsView {
  readonly layout: FormLayoutProps;
  readonly groups: readonly ListedGroup[];
  /** Part of a name that was searched for. */
  readonly search: string;
  readonly paging: PagingView;
  readonly mayCreate: boolean;
  readonly typedName?: string | undefined;
  readonly problem?: Phrase | undefined;
}

/** The administration's list of groups, with the form that makes one: `name`. */
export function adminGroupsPage(view: AdminGroupsView): Html {
  const { layout, groups, search, mayCreate, typedName, problem } = view;
  const { urls } = layout;
  const { total } = view.paging;
  return adminLayout(layout, {
    title: text`Groups`,
    tab: 'groups',
    body: html`${pageHead(text`Groups`, text`Roles and access can be given to a group instead of to each user.`)}
${
  mayCreate &&
  html`<form class="inline-form" method="post" action="${urls.adminGroups}">
${csrfField(layout)}
${textField({ name: 'name', label: text`Name of a new group`, value: typedName, problem, autocomplete: 'off', isLiteral: true, maxLength: 255 })}
<button class="button primary">${text`Create group`}</button>
</form>`
}
${(total > view.paging.shown || search !== '') && searchForm(urls.adminGroups, { label: text`Find a group`, search })}
<section class="block">${
      groups.length === 0
        ? html`<p class="empty">${search === '' ? text`There are no groups yet.` : text`No group’s name contains “${search}”.`}</p>`
        : html`${table(
            text`Groups`,
            [
              {
                label: text`Name`,
                style: 'name',
                cell: ({ name }) => adminLink(layout, 'group', name),
              },
              { label: text`Members`, cell: ({ memberCount }) => formatNumber(memberCount) },
              { label: text`Managed by`, cell: ({ origin }) => originWord(origin) },
            ],
            groups,
            { style: 'dense' },
          )}${paging(view.paging)}`
    }</section>`,
  });
}

export interface AdminGroupView {
  readonly layout: FormLayoutProps;
  readonly group: {
    readonly name: string;
    readonly origin: string;
    readonly properties: Readonly<Record<string, unknown>>;
  };
  readonly members: readonly Membership[];
  readonly search: string;
  readonly paging: PagingView;
  /** Undefined where the administrator may not read them. */
  readonly roles?:
    | readonly (Role & {
        readonly mayTakeAway: boolean;
      })[]
    | undefined;
  /** Undefined for who may not read it. */
  readonly access?: AccessView | undefined;
  readonly may: {
    /** Its members and its properties. */
    readonly changeMembers: boolean;
    readonly delete: boolean;
    readonly listUsers: boolean;
  };
  readonly typedNames?: string | undefined;
  readonly problem?: Phrase | undefined;
}

/** One group with a page of its members. Adding sends `names`, removing `name`. */
export function adminGroupPage(view: AdminGroupView): Html {
  const { layout, group, search, may, typedNames, problem } = view;
  const { urls } = layout;
  const { total } = view.paging;
  const url = urls.adminGroup(group.name);
  return adminLayout(layout, {
    title: group.name,
    tab: 'groups',
    scripts: ['complete-names.js'],
    body: html`${pageHead(
      group.name,
      html`${leadOf(view)}${may.listUsers && html` <a href="${urls.adminUsers}?${new URLSearchParams({ group: group.name }).toString()}">${text`Show among users`}</a>`}`,
      may.delete &&
        html`<a class="button danger" href="${urls.adminGroup(group.name, 'delete')}">${text`Delete group…`}</a>`,
    )}
${
  may.changeMembers &&
  html`<form class="fields" method="post" action="${urls.adminGroup(group.name, 'add-members')}">
${csrfField(layout)}
${namesField({ completes: 'user', name: 'names', label: text`Add members`, value: typedNames, problem, help: text`User names, one on each line.` })}
<div class="actions"><button class="button primary">${text`Add to group`}</button></div>
</form>`
}
<section class="block"><h2>${text`Members`}</h2>
${(total > view.paging.shown || search !== '') && searchForm(url, { label: text`Find a member`, search })}
${memberTable(view)}</section>
${accessSection(layout, view.access, url)}
${roleSection(view)}
${propertySection(view)}`,
  });
}

function leadOf({ group, search, paging: { total: count } }: AdminGroupView): Phrase {
  const origin = originWord(group.origin);
  return search === ''
    ? message('{count, plural, one {# member} other {# members}}, managed by {origin}.', {
        count,
        origin,
      })
    : message('{count, plural, one {# match} other {# matches}}, managed by {origin}.', {
        count,
        origin,
      });
}

function memberTable({ layout, group, members, search, may, paging: shown }: AdminGroupView): Html {
  const { urls } = layout;
  if (members.length === 0) {
    return html`<p class="soft">${search === '' ? text`No members yet.` : text`No member’s name contains “${search}”.`}</p>`;
  }
  return html`${table(
    text`Members`,
    [
      {
        label: text`Name`,
        style: 'name',
        cell: ({ name }) => adminLink(layout, 'user', name),
      },
      { label: text`Added by`, cell: ({ origin }) => originWord(origin) },
      {
        label: text`Actions`,
        style: 'end',
        cell: ({ name }) =>
          may.changeMembers &&
          html`<div class="actions">${actionForm(layout, {
            action: urls.adminGroup(group.name, 'remove-member'),
            label: text`Remove`,
            accessibleLabel: text`Remove ${name} from the group`,
            style: 'small danger',
            fields: {
              name,
              search: search || undefined,
              ...edgeFields(shown.edge),
            },
          })}</div>`,
      },
    ],
    members,
    { style: 'dense' },
  )}${paging(shown)}`;
}

function roleSection({ layout, group, roles }: AdminGroupView): HtmlValue {
  if (roles === undefined) return false;
  return html`<section class="block"><h2>${text`Roles it gives`}</h2>${
    roles.length === 0
      ? html`<p class="soft">${text`None.`}</p>`
      : html`<ul class="list">${roles.map(
          (role) =>
            html`<li><div class="what">${adminLink(layout, 'role', role.name)}${role.description !== '' && html`<p>${roleDescription(role)}</p>`}</div>${role.mayTakeAway && takeAwayForm(layout, { role: role.name, kind: 'group', name: group.name, ownUrl: layout.urls.adminGroup(group.name) })}</li>`,
        )}</ul>`
  }</section>`;
}

/** Longer values are cut: programs put them there. */
const maxValueLength = 1_000;
const maxProperties = 50;

function propertySection({ layout, group, may }: AdminGroupView): HtmlValue {
  const properties = Object.entries(group.properties).slice(0, maxProperties);
  if (properties.length === 0 && !may.changeMembers) return false;
  return html`<section class="block"><h2>${text`Properties`}</h2>${
    properties.length === 0
      ? html`<p class="soft">${text`None.`}</p>`
      : html`<dl class="facts">${properties.map(
          ([key, value]) =>
            html`<dt>${key}</dt><dd><code>${JSON.stringify(value).slice(0, maxValueLength)}</code></dd>`,
        )}</dl>`
  }${
    may.changeMembers &&
    html`<p><a class="button" href="${layout.urls.adminGroup(group.name, 'properties')}">${text`Edit properties…`}</a></p>`
  }</section>`;
}
