import { longestDisplayName, longestEmail, type UserInfo } from '../../users/user-info.ts';
import { type SessionEntry, sessionList } from '../account/session-list.ts';
import { actionForm, csrfField, textField } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { table } from '../elements/table.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { type ServerSummary, serverStatus, serverTitle } from '../servers/server-summary.ts';
import { adminLayout } from './admin-layout.ts';
import { type UserRightsView, userRights } from './user-rights.ts';

export interface AdminUserView {
  readonly layout: FormLayoutProps;
  readonly user: {
    readonly name: string;
    readonly isAdmin: boolean;
    readonly isInvited: boolean;
    readonly createdAt: Date;
    readonly lastActivityAt?: Date | undefined;
    /** Name under which the servers run on the machine. */
    readonly systemAccount?: string | undefined;
  };
  /** Undefined where the administrator may not read it. */
  readonly profile?: AdminProfile | undefined;
  readonly rights: UserRightsView;
  readonly identities: readonly { readonly label: string; readonly display: string }[];
  readonly servers: readonly ServerSummary[];
  readonly sessions: readonly SessionEntry[];
  /** What the account's own password is: undefined where passwords are not kept here. */
  readonly password?: 'none' | 'set' | 'must-change' | undefined;
  readonly hasSecondFactor: boolean;
  /** The administrator's own account, which they cannot take away from themselves. */
  readonly isSelf: boolean;
  readonly may: {
    readonly change: boolean;
    readonly delete: boolean;
    readonly endSessions: boolean;
  };
}

export interface AdminProfile extends Pick<UserInfo, 'displayName' | 'email' | 'isEmailVerified'> {
  /** The login method that tells it at each login; undefined where it is set here. */
  readonly toldBy: string | undefined;
  readonly typed?:
    | { readonly displayName: string; readonly email: string; readonly problem: string }
    | undefined;
}

/** Everything an administrator sees of one user. */
export function adminUserPage(view: AdminUserView): Html {
  const { layout, user, servers, sessions, isSelf, may } = view;
  const { urls } = layout;
  return adminLayout(layout, {
    title: user.name,
    tab: 'users',
    scripts: ['live-state.js'],
    body: html`${pageHead(html`${user.name}${user.isAdmin && html` <span class="tag">Administrator</span>`}${user.isInvited && html` <span class="tag">Invited</span>`}`, undefined, linkButton(view))}
${facts(view)}
${profileForm(view)}
<section class="block" id="servers" data-live-seconds="5"><h2>Servers</h2>${serverTable(layout, servers)}</section>
<section class="block"><h2>Logins</h2>${
      sessions.length === 0
        ? html`<p class="soft">Not logged in anywhere.</p>`
        : html`${sessionList(layout, sessions, { endUrl: urls.adminUser(user.name, 'end-session') })}
${may.endSessions && html`<div class="pages">${actionForm(layout, { action: urls.adminUser(user.name, 'end-sessions'), label: isSelf ? 'End all other logins' : 'End all logins', style: 'small danger' })}</div>`}`
    }</section>
${userRights(layout, user.name, view.rights)}
${(isSelf || may.change || may.delete) && html`<section class="block"><h2>Rights and removal</h2>${removal(view)}</section>`}`,
  });
}

function linkButton({ layout, user, password }: AdminUserView): HtmlValue {
  if (password === undefined) return false;
  return actionForm(layout, {
    action: layout.urls.adminUser(user.name, 'invitation'),
    label: password === 'none' ? 'Make invitation link' : 'Make password-reset link',
    style: 'primary',
  });
}

const passwordWords = {
  none: 'Not chosen yet',
  set: 'Set',
  'must-change': 'Set; must be changed at the next login',
} as const;

function facts(view: AdminUserView): Html {
  const { layout, user, identities, password, hasSecondFactor } = view;
  const { now } = layout;
  return html`<dl class="facts">
${view.profile && profileFacts(view.profile)}<dt>Last activity</dt><dd>${user.lastActivityAt ? timeElement(user.lastActivityAt, now) : html`<span class="soft">Never</span>`}</dd>
<dt>Account made</dt><dd>${timeElement(user.createdAt, now)}</dd>
${password !== undefined && html`<dt>Password</dt><dd>${passwordWords[password]}</dd>`}
${user.systemAccount !== undefined && html`<dt>System account</dt><dd>${user.systemAccount}</dd>`}
<dt>Second factor</dt><dd>${hasSecondFactor ? 'On' : 'Off'}</dd>
${identities.length > 0 && html`<dt>Identities</dt><dd>${identities.map(({ label, display }) => html`<div>${label}: ${display}</div>`)}</dd>`}
</dl>`;
}

function profileFacts({ displayName, email, isEmailVerified, toldBy }: AdminProfile): Html {
  const from = toldBy !== undefined && html` <span class="soft">(from “${toldBy}”)</span>`;
  return html`${displayName !== undefined && html`<dt>Display name</dt><dd><bdi>${displayName}</bdi>${from}</dd>\n`}${email !== undefined && html`<dt>E-mail address</dt><dd>${email}${!isEmailVerified && html` <span class="tag">Not verified</span>`}${from}</dd>\n`}`;
}

/** What a provider tells is changed there. */
function profileForm({ layout, user, profile, may }: AdminUserView): HtmlValue {
  if (profile === undefined || profile.toldBy !== undefined || !may.change) return false;
  const { displayName, email, typed } = profile;
  return html`<section class="block"><h2>Display name and e-mail address</h2>
<form class="fields" method="post" action="${layout.urls.adminUser(user.name, 'profile')}">
${csrfField(layout)}${typed && notice('bad', typed.problem)}${textField({
  name: 'display_name',
  label: 'Display name',
  value: typed?.displayName ?? displayName ?? '',
  autocomplete: 'off',
  isOptional: true,
  maxLength: longestDisplayName,
})}
${textField({
  name: 'email',
  label: 'E-mail address',
  value: typed?.email ?? email ?? '',
  help: 'Counts as verified: other programs may know the user by it.',
  autocomplete: 'off',
  isLiteral: true,
  isOptional: true,
  maxLength: longestEmail,
})}
<div class="actions"><button class="button">Save</button></div>
</form></section>`;
}

function serverTable(layout: FormLayoutProps, servers: readonly ServerSummary[]): Html {
  if (servers.length === 0) return html`<p class="soft">None.</p>`;
  const { now, urls } = layout;
  return table(
    'Servers',
    [
      {
        label: 'Server',
        style: 'name',
        cell: (server) =>
          html`<a href="${urls.server(server.userName, server.name)}">${server.name === '' ? 'Default server' : serverTitle(server)}</a>${server.failure && html`<span class="under">${server.failure}</span>`}`,
      },
      { label: 'State', cell: ({ state }) => serverStatus(state) },
      {
        label: 'Last activity',
        cell: ({ lastActivityAt }) =>
          lastActivityAt ? timeElement(lastActivityAt, now) : html`<span class="soft">Never</span>`,
      },
      {
        label: 'Actions',
        style: 'end',
        cell: ({ userName, name, state }) => {
          const isUp = state === 'running' || state === 'starting' || state === 'unreachable';
          const labelOfUp = state === 'unreachable' ? 'Forget' : 'Stop';
          const label = isUp ? labelOfUp : 'Start';
          return html`<div class="actions"><a class="button small" href="${urls.share(userName, name)}" aria-label="Sharing of ${name === '' ? 'the default server' : name}">Sharing</a>${
            state !== 'stopping' &&
            actionForm(layout, {
              action: isUp ? urls.stop(userName, name) : urls.spawn(userName, name),
              label,
              accessibleLabel: `${label} ${name === '' ? 'the default server' : name}`,
              style: 'small',
              fields: { return_to: urls.adminUser(userName) },
            })
          }</div>`;
        },
      },
    ],
    servers,
  );
}

function removal({ layout, user, hasSecondFactor, isSelf, may }: AdminUserView): Html {
  const { urls } = layout;
  const entry = (title: string, text: string, control: HtmlValue): Html =>
    html`<li><div class="what"><strong>${title}</strong><p>${text}</p></div>${control}</li>`;
  if (isSelf) {
    const text = 'Another administrator can take your rights away or delete your account.';
    return html`<ul class="list">${entry('This is you', text, '')}</ul>`;
  }
  return html`<ul class="list">
${
  hasSecondFactor &&
  may.change &&
  entry(
    'Remove the second factor',
    'For users who have lost both phone and recovery codes. Make sure who is asking.',
    actionForm(layout, {
      action: urls.adminUser(user.name, 'remove-second-factor'),
      label: 'Remove',
      accessibleLabel: 'Remove the second factor',
      style: 'small danger',
    }),
  )
}
${may.change && administratorEntry(layout, user, entry)}
${may.delete && entry('Delete this user', 'Stops the servers, revokes the tokens and ends the logins.', html`<a class="button small danger" href="${urls.adminUser(user.name, 'delete')}" aria-label="Delete ${user.name}">Delete…</a>`)}
</ul>`;
}

function administratorEntry(
  layout: FormLayoutProps,
  { name, isAdmin }: AdminUserView['user'],
  entry: (title: string, text: string, control: HtmlValue) => Html,
): Html {
  return isAdmin
    ? entry('Administrator', 'May do everything on this hub.', demotion(layout, name))
    : entry(
        'Make administrator',
        'Administrators may do everything, also for other users.',
        html`<a class="button small" href="${layout.urls.adminUser(name, 'admin')}">Make administrator…</a>`,
      );
}

function demotion(layout: FormLayoutProps, userName: string): Html {
  return actionForm(layout, {
    action: layout.urls.adminUser(userName, 'admin'),
    label: 'Take the rights away',
    style: 'small',
    fields: { admin: 'false' },
  });
}
