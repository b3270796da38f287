import type { ListedInvitation } from '../../../identity/users/invitation-store.ts';
import {
  maxDisplayNameLength,
  maxEmailLength,
  maxPictureUrlLength,
  type UserInfo,
} from '../../../identity/users/user-info.ts';
import type { UserTab } from '../../../operations/user-page.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type SessionEntry, sessionList } from '../account/session-list.ts';
import { actionForm, csrfField, hiddenFields, textField } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadSparks } from '../elements/load-plots.ts';
import { notice } from '../elements/notice.ts';
import { portrait } from '../elements/portrait.ts';
import { timeElement } from '../elements/quantity.ts';
import { table } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { type ServerSummary, serverStatus, serverTitle } from '../servers/server-summary.ts';
import { type UserRightsView, userRights } from './user-rights.ts';

export interface AdminUserView {
  readonly layout: FormLayoutProps;
  /** The part that is shown; what belongs to another is left out. */
  readonly tab: UserTab;
  /** The parts that the administrator may see. */
  readonly tabs: readonly UserTab[];
  readonly user: {
    readonly name: string;
    readonly isAdmin: boolean;
    readonly invitation?: ListedInvitation | undefined;
    readonly isSuspended: boolean;
    readonly createdAt: Date;
    readonly lastActivityAt?: Date | undefined;
    /** Name under which the servers run on the machine. */
    readonly systemAccount?: string | undefined;
  };
  /** Undefined where the administrator may not read it. */
  readonly profile?: AdminProfile | undefined;
  readonly rights: UserRightsView;
  readonly identities: readonly { readonly label: Phrase; readonly display: string }[];
  readonly servers: readonly UserServer[];
  readonly sessions?: readonly SessionEntry[] | undefined;
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

interface UserServer extends ServerSummary {
  readonly mayOpen?: boolean | undefined;
}

export interface AdminProfile extends Pick<UserInfo, 'displayName' | 'email' | 'isEmailVerified'> {
  /** The login method that tells it at each login; undefined where it is set here. */
  readonly providedBy: Phrase | undefined;
  readonly shownPictureUrl?: string | undefined;
  readonly pictureUrl?: string | undefined;
  readonly typed?:
    | {
        readonly displayName: string;
        readonly email: string;
        readonly pictureUrl: string;
        readonly problem: Phrase;
      }
    | undefined;
}

const tabLabels = {
  overview: text`Overview`,
  access: text`Access`,
  logins: text`Sessions and tokens`,
  activity: text`Activity`,
} as const satisfies Record<UserTab, Phrase>;

/** What an administrator sees of one user: what is always at hand, and one of several parts. */
export function adminUserPage(view: AdminUserView): Html {
  const { layout, user, servers, tab, tabs, isSelf, may } = view;
  const url = layout.urls.adminUser(user.name);
  const server = servers.find(({ name }) => name === '');
  const isOverview = tab === 'overview';
  return adminLayout(layout, {
    title: user.name,
    tab: 'users',
    scripts: ['live-state.js'],
    body: html`${pageHead(
      html`${user.name}${user.isAdmin && html` <span class="tag">${text`Administrator`}</span>`}${user.invitation?.state === 'sent' && html` <span class="tag">${text`Invited`}</span>`}${user.isSuspended && html` <span class="tag">${text`Suspended`}</span>`}`,
      server && html`<span id="state" data-live-seconds="5">${serverStatus(server)}</span>`,
      html`<div class="actions" id="actions" data-live-seconds="5">${view.rights.giveAccessUrl !== undefined && html`<a class="button small" href="${view.rights.giveAccessUrl}">${text`Give access`}</a>`}${server && serverActions(layout, server, 'small primary')}</div>`,
    )}
${(isSelf || may.change || may.delete) && html`<details class="new"><summary class="button small">${text`More actions`}</summary><div class="panel">${accountActions(view)}</div></details>`}
<nav class="tabs" aria-label="${text`Parts of this page`}">${tabs.map((each) => html`<a href="${url}${each !== 'overview' && `?tab=${each}`}"${each === tab && html` aria-current="page"`}>${tabLabels[each]}</a>`)}</nav>
${
  isOverview &&
  html`${facts(view)}
${profileForm(view)}
<section class="block" id="servers" data-live-seconds="5"><h2>${text`Servers`}</h2>${serverTable(layout, servers)}</section>`
}
${loginSection(view)}
${userRights(layout, user.name, view.rights)}`,
  });
}

function loginSection({ layout, user, sessions, isSelf, may }: AdminUserView): HtmlValue {
  if (sessions === undefined) return false;
  const { urls } = layout;
  return html`<section class="block"><h2>${text`Logins`}</h2>${
    sessions.length === 0
      ? html`<p class="soft">${text`Not logged in anywhere.`}</p>`
      : html`${sessionList(layout, sessions, { endUrl: urls.adminUser(user.name, 'end-session') })}
${may.endSessions && html`<div class="pages">${actionForm(layout, { action: urls.adminUser(user.name, 'end-sessions'), label: isSelf ? text`End all other logins` : text`End all logins`, style: 'small danger' })}</div>`}`
  }</section>`;
}

const passwordWords = {
  none: text`Not set`,
  set: text`Set`,
  'must-change': text`Set; must be changed at the next login`,
} as const;

function facts(view: AdminUserView): Html {
  const { layout, user, identities, password, hasSecondFactor } = view;
  const { now } = layout;
  return html`${portrait(view.profile?.shownPictureUrl)}<dl class="facts">
${view.profile && profileFacts(view.profile)}<dt>${text`Last activity`}</dt><dd>${timeElement(user.lastActivityAt, now)}</dd>
<dt>${text`Created`}</dt><dd>${timeElement(user.createdAt, now)}</dd>
${user.invitation && html`<dt>${text`Invitation`}</dt><dd>${invitationFacts(user.invitation, now)}</dd>\n`}${password !== undefined && html`<dt>${text`Password`}</dt><dd>${passwordWords[password]}</dd>`}
${user.systemAccount !== undefined && html`<dt>${text`System account`}</dt><dd>${user.systemAccount}</dd>`}
<dt>${text`Second factor`}</dt><dd>${hasSecondFactor ? text`On` : text`Off`}</dd>
${identities.length > 0 && html`<dt>${text`Identities`}</dt><dd>${identities.map(({ label, display }) => html`<div>${label}: ${display}</div>`)}</dd>`}
</dl>`;
}

/** What has become of it, and who made it. */
function invitationFacts({ state, expiresAt, createdAt, createdBy }: ListedInvitation, now: Date) {
  const made = html` <span class="soft">${text`made by ${createdBy}`} ${timeElement(createdAt, now)}</span>`;
  if (state === 'used') return html`${text`Was used`}${made}`;
  return html`${state === 'sent' ? text`Link works until` : text`Link has expired`} ${timeElement(expiresAt, now)}${made}`;
}

function profileFacts(profile: AdminProfile): Html {
  const { displayName, email, isEmailVerified, pictureUrl, shownPictureUrl, providedBy } = profile;
  const from =
    providedBy !== undefined && html` <span class="soft">${text`(from “${providedBy}”)`}</span>`;
  return html`${displayName !== undefined && html`<dt>${text`Display name`}</dt><dd><bdi>${displayName}</bdi>${from}</dd>\n`}${email !== undefined && html`<dt>${text`E-mail address`}</dt><dd>${email}${!isEmailVerified && html` <span class="tag">${text`Not verified`}</span>`}${from}</dd>\n`}${pictureUrl !== undefined && shownPictureUrl === undefined && html`<dt>${text`Picture`}</dt><dd><code>${pictureUrl}</code>${from}</dd>\n`}`;
}

/** What a provider tells is changed there. */
function profileForm({ layout, user, profile, may }: AdminUserView): HtmlValue {
  if (profile === undefined || profile.providedBy !== undefined || !may.change) return false;
  const { displayName, email, pictureUrl, typed } = profile;
  return html`<details class="more"${typed !== undefined && html` open`}><summary>${text`Change display name, e-mail address or picture`}</summary>
<form class="fields" method="post" action="${layout.urls.adminUser(user.name, 'profile')}">
${csrfField(layout)}${hiddenFields({ shown_display_name: displayName ?? '', shown_email: email ?? '', shown_picture_url: pictureUrl ?? '' })}${typed && notice('bad', typed.problem)}${textField(
  {
    name: 'display_name',
    label: text`Display name`,
    value: typed?.displayName ?? displayName ?? '',
    autocomplete: 'off',
    isOptional: true,
    maxLength: maxDisplayNameLength,
  },
)}
${textField({
  name: 'email',
  label: text`E-mail address`,
  value: typed?.email ?? email ?? '',
  help: text`Treated as verified. Other apps may use it to identify this person.`,
  autocomplete: 'off',
  isLiteral: true,
  isOptional: true,
  maxLength: maxEmailLength,
})}
${textField({
  name: 'picture_url',
  label: text`Picture`,
  value: typed?.pictureUrl ?? pictureUrl ?? '',
  help: text`An https:// URL.`,
  autocomplete: 'off',
  isLiteral: true,
  isOptional: true,
  maxLength: maxPictureUrlLength,
})}
<div class="actions"><button class="button">${text`Save`}</button></div>
</form></details>`;
}

function serverTable(layout: FormLayoutProps, servers: readonly UserServer[]): Html {
  if (servers.length === 0) return html`<p class="soft">${text`None.`}</p>`;
  const { now, urls } = layout;
  return table(
    text`Servers`,
    [
      {
        label: text`Server`,
        style: 'name',
        cell: (server) =>
          html`<a href="${urls.server(server.userName, server.name)}">${server.name === '' ? text`Default server` : serverTitle(server)}</a>${server.failure && html`<span class="under">${server.failure}</span>`}`,
      },
      {
        label: text`State`,
        cell: (server) => html`${serverStatus(server)}${loadSparks(server.load)}`,
      },
      {
        label: text`Last activity`,
        cell: ({ lastActivityAt }) => timeElement(lastActivityAt, now),
      },
      {
        label: text`Actions`,
        style: 'end',
        cell: (server) => html`<div class="actions">${serverActions(layout, server)}</div>`,
      },
    ],
    servers,
  );
}

function serverActions(
  layout: FormLayoutProps,
  { userName, name, state, url, mayOpen }: UserServer,
  openStyle = 'small',
): Html {
  const { urls } = layout;
  const isUp = state === 'running' || state === 'starting' || state === 'unreachable';
  const which = name === '' ? text`the default server` : name;
  const [label, described] = isUp
    ? state === 'unreachable'
      ? [text`Discard`, text`Discard ${which}`]
      : [text`Stop`, text`Stop ${which}`]
    : [text`Start`, text`Start ${which}`];
  return html`${state === 'running' && mayOpen && html`<a class="button ${openStyle}" href="${url}" aria-label="${text`Open ${which}`}">${text`Open`}</a>`}<a class="button small" href="${urls.share(userName, name)}" aria-label="${text`Sharing of ${which}`}">${text`Sharing`}</a>${
    state !== 'stopping' &&
    actionForm(layout, {
      action: isUp ? urls.stop(userName, name) : urls.spawn(userName, name),
      label,
      accessibleLabel: described,
      style: 'small',
      fields: { return_to: urls.adminUser(userName) },
    })
  }`;
}

type Entry = (title: Phrase, reported: Phrase, control: HtmlValue) => Html;

function accountActions(view: AdminUserView): Html {
  const { layout, user, hasSecondFactor, isSelf, may } = view;
  const { urls } = layout;
  const entry: Entry = (title, reported, control) =>
    html`<li><div class="what"><strong>${title}</strong><p>${reported}</p></div>${control}</li>`;
  if (isSelf) {
    const reported = text`Another administrator can take your rights away or delete your account.`;
    return html`<ul class="list">${linkEntry(view, entry)}${entry(text`This is you`, reported, '')}</ul>`;
  }
  return html`<ul class="list">
${linkEntry(view, entry)}
${
  hasSecondFactor &&
  may.change &&
  entry(
    text`Remove the second factor`,
    text`For users who have lost their phone or passkeys, and their recovery codes. Make sure who is asking.`,
    actionForm(layout, {
      action: urls.adminUser(user.name, 'remove-second-factor'),
      label: text`Remove`,
      accessibleLabel: text`Remove the second factor`,
      style: 'small danger',
    }),
  )
}
${may.change && administratorEntry(layout, user, entry)}
${may.change && suspensionEntry(layout, user, entry)}
${may.delete && entry(text`Delete this user`, text`Stops the servers, revokes the tokens and ends the logins.`, html`<a class="button small danger" href="${urls.adminUser(user.name, 'delete')}" aria-label="${text`Delete ${user.name}`}">${text`Delete…`}</a>`)}
</ul>`;
}

function linkEntry({ layout, user, password }: AdminUserView, entry: Entry): HtmlValue {
  if (password === undefined) return false;
  const action = layout.urls.adminUser(user.name, 'invitation');
  if (password !== 'none')
    return entry(
      text`Password reset`,
      text`By a link with which this user chooses a new password.`,
      actionForm(layout, { action, label: text`Make password-reset link`, style: 'small' }),
    );
  return entry(
    text`Invitation`,
    text`By a link with which this user chooses a first password.`,
    actionForm(layout, {
      action,
      label:
        user.invitation === undefined ? text`Make invitation link` : text`Make new invitation link`,
      style: 'small',
    }),
  );
}

function suspensionEntry(
  layout: FormLayoutProps,
  { name, isSuspended }: AdminUserView['user'],
  entry: Entry,
): Html {
  const action = layout.urls.adminUser(name, isSuspended ? 'unsuspend' : 'suspend');
  return isSuspended
    ? entry(
        text`Suspended`,
        text`Logins, tokens and shares work again once the suspension ends; servers stay stopped.`,
        actionForm(layout, { action, label: text`End suspension`, style: 'small' }),
      )
    : entry(
        text`Suspend this user`,
        text`Stops the servers at once, and no login, token or share works until the suspension ends. Nothing is deleted.`,
        actionForm(layout, {
          action,
          label: text`Suspend`,
          accessibleLabel: text`Suspend ${name}`,
          style: 'small danger',
        }),
      );
}

function administratorEntry(
  layout: FormLayoutProps,
  { name, isAdmin }: AdminUserView['user'],
  entry: Entry,
): Html {
  return isAdmin
    ? entry(text`Administrator`, text`May do everything on this hub.`, demotion(layout, name))
    : entry(
        text`Make administrator`,
        text`Administrators may do everything, also for other users.`,
        html`<a class="button small" href="${layout.urls.adminUser(name, 'admin')}">${text`Make administrator…`}</a>`,
      );
}

function demotion(layout: FormLayoutProps, userName: string): Html {
  return actionForm(layout, {
    action: layout.urls.adminUser(userName, 'admin'),
    label: text`Remove administrator`,
    style: 'small',
    fields: { admin: 'false' },
  });
}
