import type { RoleReason } from '../../../identity/rbac/role-reasons.ts';
import type { ScopeDescription } from '../../../identity/rbac/scope-descriptions.ts';
import type { AuditEntry } from '../../../platform/audit/audit-event.ts';
import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { adminLink } from '../elements/admin-link.ts';
import { auditTable } from '../elements/audit-table.ts';
import { originWord } from '../elements/code-labels.ts';
import { actionForm, csrfField, textField } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { timeElement } from '../elements/quantity.ts';
import { table } from '../elements/table.ts';
import { type Html, type HtmlValue, html, joinHtml } from '../html.ts';
import { takeAwayForm } from './access-page.ts';

/** What a user may do and why, by which tokens, and what was done to them. */
export interface UserRightsView {
  /** Undefined where the administrator may not read them; so with all that follows. */
  readonly groups?: readonly UserGroup[] | undefined;
  readonly mayAddToGroup: boolean;
  readonly roles?: readonly UserRole[] | undefined;
  /** Where access is given; undefined for who may give none. */
  readonly giveAccessUrl: string | undefined;
  readonly tokens?: { readonly shown: readonly UserToken[]; readonly total: number } | undefined;
  readonly mayRevoke: boolean;
  readonly activity?: readonly AuditEntry[] | undefined;
}

export interface UserGroup {
  readonly name: string;
  /** Who put the user into it. */
  readonly origin: string;
  readonly mayRemove: boolean;
}

export interface UserRole {
  readonly name: string;
  readonly reasons: readonly RoleReason[];
  readonly allows: readonly ScopeDescription[];
  readonly mayTakeAway: boolean;
}

export interface UserToken {
  readonly id: string;
  /** What it is for, or whose it is. */
  readonly title: Phrase;
  readonly may: readonly ScopeDescription[];
  readonly createdAt: Date;
  readonly lastUsedAt?: Date | undefined;
  readonly expiresAt?: Date | undefined;
}

/** The sections of a user's page on rights. */
export function userRights(layout: FormLayoutProps, userName: string, view: UserRightsView): Html {
  return html`${groupSection(layout, userName, view)}
${roleSection(layout, userName, view)}
${tokenSection(layout, userName, view)}
${activitySection(layout, userName, view)}`;
}

function groupSection(
  layout: FormLayoutProps,
  userName: string,
  { groups, mayAddToGroup }: UserRightsView,
): HtmlValue {
  if (groups === undefined) return false;
  const { urls } = layout;
  return html`<section class="block"><h2>${text`Groups`}</h2>${
    groups.length === 0
      ? html`<p class="soft">${text`In no group.`}</p>`
      : html`<ul class="list">${groups.map(
          ({ name, origin, mayRemove }) =>
            html`<li><div class="what">${adminLink(layout, 'group', name)}<p>${text`By ${originWord(origin)}`}</p></div>${
              mayRemove &&
              actionForm(layout, {
                action: urls.adminUser(userName, 'remove-from-group'),
                label: text`Remove`,
                accessibleLabel: text`Remove from the group ${name}`,
                style: 'small danger',
                fields: { group: name },
              })
            }</li>`,
        )}</ul>`
  }${
    mayAddToGroup &&
    html`<form class="inline-form" method="post" action="${urls.adminUser(userName, 'add-to-group')}">${csrfField(layout)}
${textField({ name: 'group', label: text`Add to a group`, autocomplete: 'off', isLiteral: true, maxLength: 255 })}
<button class="button">${text`Add`}</button></form>`
  }</section>`;
}

/** Lines of one role; the page of the role has all. */
const maxAllowed = 6;

function roleSection(
  layout: FormLayoutProps,
  userName: string,
  { roles }: UserRightsView,
): HtmlValue {
  if (roles === undefined) return false;
  return html`<section class="block"><h2>${text`Permissions, and where they come from`}</h2><ul class="list">${roles.map(
    ({
      name,
      reasons,
      allows,
      mayTakeAway,
    }) => html`<li><div class="what"><strong>${adminLink(layout, 'role', name)}</strong>
<p>${joinHtml(
      reasons.map((reason) => reasonText(layout, reason)),
      ' ',
    )}</p>
${allowedList(allows)}</div>${mayTakeAway && takeAwayForm(layout, { role: name, kind: 'user', name: userName, ownUrl: `${layout.urls.adminUser(userName)}?tab=access` })}</li>`,
  )}</ul></section>`;
}

function allowedList(allows: readonly ScopeDescription[]): Html {
  return html`<ul class="allows">${allows.slice(0, maxAllowed).map(({ scope, description, restriction }) => html`<li title="${scope}">${description}${restriction !== undefined && html` <span class="soft">(${restriction})</span>`}</li>`)}</ul>
${allows.length > maxAllowed && html`<p class="soft">${text`And ${allows.length - maxAllowed} more.`}</p>`}`;
}

function reasonText(layout: FormLayoutProps, reason: RoleReason): Text {
  switch (reason.kind) {
    case 'every user':
      return text`Every user holds it.`;
    case 'administrator':
      return text`Every administrator holds it.`;
    case 'given':
      return text`Given to this user by ${originWord(reason.origin)}.`;
    case 'group':
      return text`Through the group ${adminLink(layout, 'group', reason.groupName)}, in which ${originWord(reason.memberOrigin)} put this user.`;
  }
}

function tokenSection(
  layout: FormLayoutProps,
  userName: string,
  { tokens, mayRevoke }: UserRightsView,
): HtmlValue {
  if (tokens === undefined) return false;
  const { now, urls } = layout;
  const { shown, total } = tokens;
  return html`<section class="block"><h2>${text`Tokens`}</h2>${
    shown.length === 0
      ? html`<p class="soft">${text`None.`}</p>`
      : table(
          text`Tokens`,
          [
            {
              label: text`Token`,
              style: 'name',
              cell: ({ title, may }) => html`${title}${allowedList(may)}`,
            },
            { label: text`Created`, cell: ({ createdAt }) => timeElement(createdAt, now) },
            { label: text`Last used`, cell: ({ lastUsedAt }) => timeElement(lastUsedAt, now) },
            { label: text`Expires`, cell: ({ expiresAt }) => timeElement(expiresAt, now) },
            {
              label: text`Actions`,
              style: 'end',
              cell: ({ id, title }) =>
                mayRevoke &&
                html`<div class="actions">${actionForm(layout, {
                  action: urls.adminUser(userName, 'revoke-token'),
                  label: text`Revoke`,
                  accessibleLabel: text`Revoke the token ${title}`,
                  style: 'small danger',
                  fields: { token_id: id },
                })}</div>`,
            },
          ],
          shown,
        )
  }${total > shown.length && html`<p class="soft">${text`The ${shown.length} newest of ${total}.`}</p>`}</section>`;
}

function activitySection(
  layout: FormLayoutProps,
  userName: string,
  { activity }: UserRightsView,
): HtmlValue {
  if (activity === undefined) return false;
  const all = `${layout.urls.adminActivity}?${new URLSearchParams({ target: userName })}`;
  const own = `${layout.urls.adminActivity}?${new URLSearchParams({ actor: userName })}`;
  return html`<section class="block"><h2>${text`Activity`}</h2>${
    activity.length === 0
      ? html`<p class="soft">${text`Nothing is recorded.`}</p>`
      : auditTable(layout, activity, { caption: text`Activity`, isForAdministrators: true })
  }<p><a href="${all}">${text`All that was done to ${userName}`}</a>, <a href="${own}">${text`all that ${userName} did`}</a></p></section>`;
}
