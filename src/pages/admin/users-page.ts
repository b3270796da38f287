import { actionForm } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatCount } from '../elements/quantity.ts';
import { type Column, table } from '../elements/table.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html, joinHtml } from '../html.ts';
import type { PageUrls } from '../page-urls.ts';
import { type ShownServerState, serverStatus } from '../servers/server-summary.ts';
import { adminLayout } from './admin-layout.ts';

export interface AdminUsersView {
  readonly layout: FormLayoutProps;
  readonly users: readonly AdminUserRow[];
  readonly total: number;
  readonly offset: number;
  readonly limit: number;
  /** Part of a name that was searched for. */
  readonly search: string;
  readonly sort: 'name' | 'activity';
  readonly mayAdd: boolean;
}

export interface AdminUserRow {
  readonly name: string;
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  readonly isAdmin: boolean;
  /** Has an unused invitation. */
  readonly isInvited: boolean;
  readonly lastActivityAt?: Date | undefined;
  readonly server: ShownServerState;
  /** Named servers that run. */
  readonly runningNamedServers: number;
}

/** The administration's list of users. */
export function adminUsersPage(view: AdminUsersView): Html {
  const { layout, users, total, search } = view;
  return adminLayout(layout, {
    title: 'Users',
    tab: 'users',
    scripts: ['live-state.js'],
    body: html`${pageHead('Users', formatCount(total, search === '' ? 'user' : 'match', search === '' ? undefined : 'matches'), view.mayAdd && html`<a class="button primary" href="${layout.urls.adminNewUsers}">Add users</a>`)}
<form class="inline-form" method="get" action="${layout.urls.admin}" role="search">
<div class="field"><label for="search">Find by name or e-mail address</label><input class="input" id="search" name="search" type="search" value="${search}" autocapitalize="none" spellcheck="false"></div>
<button class="button">Search</button>
</form>
<section class="block" id="users" data-live-seconds="10">${
      users.length === 0
        ? html`<p class="empty">${search === '' ? 'There are no users yet.' : html`No user’s name or e-mail address contains “${search}”.`}</p>`
        : html`${table('Users', columns(view), users)}${paging(view)}`
    }</section>`,
  });
}

function columns(view: AdminUsersView): readonly Column<AdminUserRow>[] {
  const { layout } = view;
  const { now, urls } = layout;
  return [
    {
      label: 'Name',
      heading: sortLink(view, 'name', 'Name'),
      style: 'name',
      cell: ({ name, isAdmin, isInvited, ...info }) =>
        html`<a href="${urls.adminUser(name)}">${name}</a>${isAdmin && html` <span class="tag">Administrator</span>`}${isInvited && html` <span class="tag">Invited</span>`}${aboutUser(info)}`,
    },
    {
      label: 'Last activity',
      heading: sortLink(view, 'activity', 'Last activity'),
      cell: ({ lastActivityAt }) =>
        lastActivityAt ? timeElement(lastActivityAt, now) : html`<span class="soft">Never</span>`,
    },
    {
      label: 'Server',
      cell: ({ server, runningNamedServers }) =>
        html`${serverStatus(server)}${runningNamedServers > 0 && html` <span class="tag">+ ${runningNamedServers} named</span>`}`,
    },
    {
      label: 'Actions',
      style: 'end',
      cell: (user) => html`<div class="actions">${serverButton(view, user)}</div>`,
    },
  ];
}

function aboutUser({ displayName, email }: Pick<AdminUserRow, 'displayName' | 'email'>): HtmlValue {
  const known = [displayName && html`<bdi>${displayName}</bdi>`, email].filter(Boolean);
  return known.length > 0 && html`<span class="under">${joinHtml(known, ' · ')}</span>`;
}

function serverButton(view: AdminUsersView, { name, server }: AdminUserRow): HtmlValue {
  const { layout } = view;
  const { urls } = layout;
  if (server === 'stopping') return '';
  const isUp = server === 'running' || server === 'starting' || server === 'unreachable';
  const labelOfUp = server === 'unreachable' ? 'Forget' : 'Stop';
  const label = isUp ? labelOfUp : 'Start';
  return actionForm(layout, {
    action: isUp ? urls.stop(name) : urls.spawn(name),
    label,
    accessibleLabel: `${label} the server of ${name}`,
    style: 'small',
    fields: { return_to: usersUrl(urls, view) },
  });
}

function listUrl(
  view: AdminUsersView,
  change: Partial<Pick<AdminUsersView, 'sort' | 'offset'>>,
): string {
  return usersUrl(view.layout.urls, { ...view, ...change });
}

/** The address of a part of the list. */
export function usersUrl(
  urls: PageUrls,
  { search, sort, offset }: Pick<AdminUsersView, 'search' | 'sort' | 'offset'>,
): string {
  const query = new URLSearchParams();
  if (search !== '') query.set('search', search);
  if (sort !== 'name') query.set('sort', sort);
  if (offset > 0) query.set('offset', String(offset));
  return query.size === 0 ? urls.admin : `${urls.admin}?${query}`;
}

function sortLink(view: AdminUsersView, sort: AdminUsersView['sort'], label: string): Html {
  if (view.sort === sort) return html`${label} <span aria-hidden="true">↓</span>`;
  return html`<a href="${listUrl(view, { sort, offset: 0 })}">${label}</a>`;
}

function paging(view: AdminUsersView): HtmlValue {
  const { offset, limit, total, users } = view;
  if (offset === 0 && total <= limit) return false;
  return html`<nav class="pages" aria-label="Pages of the list"><span>${offset + 1}–${offset + users.length} of ${total}</span><div class="actions">
${offset > 0 && html`<a class="button small" href="${listUrl(view, { offset: Math.max(0, offset - limit) })}" rel="prev">Previous</a>`}
${offset + users.length < total && html`<a class="button small" href="${listUrl(view, { offset: offset + limit })}" rel="next">Next</a>`}
</div></nav>`;
}
