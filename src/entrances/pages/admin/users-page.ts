import type { InvitationState } from '../../../identity/users/invitation-store.ts';
import type { UserCounts, UserStatus } from '../../../identity/users/user-filters-store.ts';
import {
  fieldByStatus,
  type KnownOfUsers,
  pageSizes,
  type UsersQuery,
  usersFields,
  usualUsers,
} from '../../../operations/users-query.ts';
import type { LoadSeries } from '../../../platform/metrics/load-history.ts';
import { message, type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadSparks } from '../elements/load-plots.ts';
import { formatNumber, timeElement } from '../elements/quantity.ts';
import { searchForm } from '../elements/search-form.ts';
import { type Column, type PageBorders, paging, sorting, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html, joinHtml } from '../html.ts';
import { usersUrl } from '../page-urls.ts';
import { type ShownServerState, serverStatus } from '../servers/server-summary.ts';

export interface AdminUsersView {
  readonly layout: FormLayoutProps;
  readonly query: UsersQuery;
  readonly users: readonly AdminUserRow[];
  /** On all pages. */
  readonly total: number;
  readonly borders: PageBorders;
  /** Of the search and group, whatever mark is shown. */
  readonly counts: UserCounts;
  /** What can be done with many at once here. */
  readonly acts: readonly { readonly name: string; readonly label: Phrase }[];
  readonly mayAdd: boolean;
  readonly known: KnownOfUsers;
}

export interface AdminUserRow {
  readonly name: string;
  /** The page that shows more of the user: of the user or of the default server, as far as these may be seen. */
  readonly leadsTo: 'user' | 'server' | undefined;
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  readonly isAdmin: boolean;
  /** Of one that was not used. */
  readonly invitation?: Exclude<InvitationState, 'used'> | undefined;
  readonly isSuspended: boolean;
  /** Undefined for those who may not read them. */
  readonly groups?: readonly string[] | undefined;
  readonly createdAt: Date | undefined;
  readonly lastActivityAt?: Date | undefined;
  readonly server: ShownServerState | undefined;
  readonly pausedAt?: Date | undefined;
  /** Where the default server is opened; undefined unless it runs and may be opened. */
  readonly openUrl?: string | undefined;
  /** What the administrator may do with that server. */
  readonly mayStart: boolean;
  readonly mayStop: boolean;
  /** How busy the default server was in the last hour, as far as it is known here. */
  readonly load?: LoadSeries | undefined;
  /** Named servers that run. */
  readonly runningNamedServers: number;
}

/** The administration's list of users. Acting on many sends `act`, `whom`, and `user` for each that is ticked. */
export function adminUsersPage(view: AdminUsersView): Html {
  const { layout, query, users, total, borders } = view;
  const isNarrowed = query.search !== '' || query.group !== undefined || query.status !== undefined;
  return adminLayout(layout, {
    title: text`Users`,
    tab: 'users',
    scripts: ['live-state.js'],
    body: html`${pageHead(text`Users`, countOf(total, isNarrowed), view.mayAdd && html`<a class="button primary" href="${layout.urls.adminNewUsers}">${text`Add users`}</a>`)}
${userSearch(view)}
${chips(view)}
<section class="block" id="users" data-live-seconds="10">${
      users.length === 0
        ? html`<p class="empty">${nobody(view)}</p>`
        : html`${inForm(view, table(text`Users`, columns(view), users, { style: 'dense', keyOf: ({ name }) => name }))}
${paging({ total, shown: users.length, borders, urlOf: (edge) => usersUrl(layout.urls, { ...query, edge }) })}`
    }</section>
${total > pageSizes[0] && sizes(view)}`,
  });
}

/** In a form only where it has a button: for who may do something to many users, or to the server of one of these. */
function inForm(view: AdminUsersView, list: Html): Html {
  const { layout, query, users, total, acts } = view;
  if (acts.length === 0 && users.every((user) => serverButton(view, user) === '')) return list;
  return html`<form method="post" action="${layout.urls.adminActOnUsers}">${csrfField(layout)}${hiddenFields({ ...usersFields(query), count: String(total), return_to: usersUrl(layout.urls, query) })}
${actBar(view)}
${list}</form>`;
}

function nobody({ query: { search, group, status } }: AdminUsersView): HtmlValue {
  if (search !== '') return text`No user’s name or e-mail address contains “${search}”.`;
  if (group !== undefined) return text`No such user is in the group “${group}”.`;
  return status === undefined ? text`There are no users yet.` : text`There are no such users now.`;
}

function countOf(count: number, isNarrowed: boolean): Text {
  return isNarrowed
    ? message('{count, plural, one {# match} other {# matches}}', { count })
    : message('{count, plural, one {# user} other {# users}}', { count });
}

function userSearch({ layout, query, known }: AdminUsersView): Html {
  const { search: _search, group: _group, ...fields } = usersFields({ ...query, edge: undefined });
  return searchForm(layout.urls.adminUsers, {
    label: text`Find by name or e-mail address`,
    search: query.search,
    fields,
    ...(known.groups && {
      second: { name: 'group', label: text`In the group`, value: query.group ?? '' },
    }),
  });
}

/** What stands at the name of who has not used an invitation; the longer words are too wide in a row. */
const invitationTags = {
  sent: html`<span class="tag">${text`Invited`}</span>`,
  expired: html`<span class="tag" title="${text`Invitation expired`}">${text`Expired`}</span>`,
} as const satisfies Record<Exclude<InvitationState, 'used'>, Html>;

const statusLabels = {
  failed: text`Failed`,
  running: text`Running`,
  starting: text`Starting`,
  never_active: text`Never logged in`,
  administrator: text`Administrators`,
  suspended: text`Suspended`,
  invited: text`Invited`,
  invitation_expiring: text`Invitation expires soon`,
  invitation_expired: text`Invitation expired`,
} as const satisfies Record<UserStatus, Text>;

/** They have a chip only where there are any. */
const seldom = new Set<UserStatus>([
  'suspended',
  'invited',
  'invitation_expiring',
  'invitation_expired',
]);

function chips({ layout: { urls }, query, counts, known }: AdminUsersView): Html {
  const chip = (status: UserStatus | undefined): Html =>
    html`<a class="chip${status === 'failed' && counts.failed > 0 && ' bad'}" href="${usersUrl(urls, { ...query, status, edge: undefined })}"${status === query.status && html` aria-current="true"`}>${status === undefined ? text`All` : statusLabels[status]} <b>${formatNumber(counts[status ?? 'all'])}</b></a>`;
  const statuses = (Object.keys(statusLabels) as UserStatus[]).filter(
    (status) =>
      known[fieldByStatus[status]] &&
      (!seldom.has(status) || counts[status] > 0 || status === query.status),
  );
  return html`<nav class="chips" aria-label="${message('Show', {}, { context: 'users' })}">${[undefined, ...statuses].map(chip)}${
    query.group !== undefined &&
    html`<a class="chip" href="${usersUrl(urls, { ...query, group: undefined, edge: undefined })}" aria-label="${text`Group ${query.group}: show any group`}">${text`Group ${query.group}`} <span aria-hidden="true">×</span></a>`
  }</nav>`;
}

function actBar({ acts, total }: AdminUsersView): HtmlValue {
  if (acts.length === 0) return false;
  return html`<div class="act-bar">
<label for="act" class="visually-hidden">${text`What to do`}</label><select class="input" id="act" name="act">${acts.map(({ name, label }) => html`<option value="${name}">${label}</option>`)}</select>
<label for="whom" class="visually-hidden">${text`Apply to`}</label><select class="input" id="whom" name="whom"><option value="ticked">${text`selected users`}</option><option value="matching">${message('{count, plural, one {the one that matches…} other {all # that match…}}', { count: total })}</option></select>
<button class="button">${text`Continue`}</button>
</div>`;
}

/** Columns of what may be known of all who are listed. */
function knownColumns(view: AdminUsersView): readonly Column<AdminUserRow>[] {
  const { known } = view;
  const { now } = view.layout;
  const groups: Column<AdminUserRow> = {
    label: text`Groups`,
    cell: (user) => groupLinks(view, user.groups ?? []),
  };
  const created: Column<AdminUserRow> = {
    ...sortedBy(view, 'created', text`Created`),
    cell: ({ createdAt }) => timeElement(createdAt, now),
  };
  const activity: Column<AdminUserRow> = {
    ...sortedBy(view, 'activity', text`Last activity`),
    cell: ({ lastActivityAt }) => timeElement(lastActivityAt, now),
  };
  return [
    ...(known.groups ? [groups] : []),
    ...(known.account ? [created] : []),
    ...(known.activity ? [activity] : []),
  ];
}

function columns(view: AdminUsersView): readonly Column<AdminUserRow>[] {
  const { known, query } = view;
  const tick: Column<AdminUserRow> = {
    label: text`Tick`,
    style: 'tick',
    cell: ({ name }) =>
      html`<label><input type="checkbox" name="user" value="${name}" aria-label="${text`Tick ${name}`}"></label>`,
  };
  return [
    ...(view.acts.length > 0 ? [tick] : []),
    {
      ...sortedBy(view, 'name', text`Name`),
      style: 'name',
      cell: ({ name, leadsTo, isAdmin, invitation, isSuspended, ...info }) =>
        html`${nameOf(view, name, leadsTo)}${isAdmin && html` <span class="tag">${text`Administrator`}</span>`}${invitation && html` ${invitationTags[invitation]}`}${isSuspended && html` <span class="tag">${text`Suspended`}</span>`}${aboutUser(info, query)}`,
    },
    ...knownColumns(view),
    {
      ...(known.servers ? sortedBy(view, 'server', text`Server`) : { label: text`Server` }),
      cell: ({ name, server, pausedAt, load, runningNamedServers }) =>
        server !== undefined &&
        html`<a class="quiet" href="${view.layout.urls.server(name)}">${serverStatus({ state: server, pausedAt })}</a>${runningNamedServers > 0 && html` <span class="tag">${text`+ ${runningNamedServers} named`}</span>`}${view.users.length <= maxSparks && loadSparks(load)}`,
    },
    {
      label: text`Actions`,
      style: 'end',
      cell: (user) => html`<div class="actions">${openLink(user)}${serverButton(view, user)}</div>`,
    },
  ];
}

/** Rows with plots: more would make a page of more than 100 KiB. */
const maxSparks = 10;

/** One of the two, unless a search may have found the other. */
function aboutUser(
  { displayName, email }: Pick<AdminUserRow, 'displayName' | 'email'>,
  { search }: UsersQuery,
): HtmlValue {
  const known = [displayName && html`<bdi>${displayName}</bdi>`, email]
    .filter(Boolean)
    .slice(0, search === '' ? 1 : 2);
  return known.length > 0 && html`<span class="under">${joinHtml(known, ' · ')}</span>`;
}

function nameOf(
  { layout: { urls } }: AdminUsersView,
  name: string,
  leadsTo: AdminUserRow['leadsTo'],
): Html {
  if (leadsTo === undefined) return html`<b>${name}</b>`;
  return html`<a href="${leadsTo === 'user' ? urls.adminUser(name) : urls.server(name)}">${name}</a>`;
}

/** Rows are one line. */
const shownGroups = 1;

function groupLinks({ query }: AdminUsersView, groups: readonly string[]): HtmlValue {
  const more = groups.slice(shownGroups);
  // A part of the address alone: there is one in each row.
  const link = (group: string): Html =>
    html`<a class="tag" href="${usersUrl({ adminUsers: '' }, { ...usualUsers, group, size: query.size })}">${group}</a> `;
  return html`${groups.slice(0, shownGroups).map(link)}${more.length > 0 && html`<span class="soft" title="${more.slice(0, 20).join(', ')}">+ ${more.length}</span>`}`;
}

function openLink({ name, openUrl }: AdminUserRow): HtmlValue {
  return (
    openUrl !== undefined &&
    html`<a class="button small" href="${openUrl}" aria-label="${text`Open the server of ${name}`}">${text`Open`}</a>`
  );
}

/** A button of the form around the list, which goes to an address of its own. */
function serverButton({ layout }: AdminUsersView, user: AdminUserRow): HtmlValue {
  const { urls } = layout;
  const { name, server } = user;
  if (server === undefined) return '';
  const isUp = server === 'running' || server === 'starting' || server === 'unreachable';
  if (server === 'stopping' || !(isUp ? user.mayStop : user.mayStart)) return '';
  const [label, described] = isUp
    ? server === 'unreachable'
      ? [text`Discard`, text`Discard the server of ${name}`]
      : [text`Stop`, text`Stop the server of ${name}`]
    : [text`Start`, text`Start the server of ${name}`];
  return html`<button class="button small" formaction="${isUp ? urls.stop(name) : urls.spawn(name)}" aria-label="${described}">${label}</button>`;
}

type SortedColumn = 'name' | 'created' | 'activity' | 'server';

/** The head of a column that sorts. */
function sortedBy({ layout, query }: AdminUsersView, column: SortedColumn, label: Phrase) {
  return sorting(column, label, {
    sort: query.sort,
    urlOf: (sort) => usersUrl(layout.urls, { ...query, sort, edge: undefined }),
    beginsWithLast: column === 'created' || column === 'activity',
  });
}

function sizes({ layout, query }: AdminUsersView): Html {
  return html`<nav class="page-sizes" aria-label="${text`Users on a page`}">${text`On a page:`} ${pageSizes.map(
    (size) =>
      html`<a class="page-number" href="${usersUrl(layout.urls, { ...query, size, edge: undefined })}"${size === query.size && html` aria-current="true"`}>${size}</a> `,
  )}</nav>`;
}
