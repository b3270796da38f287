import { maxDisplayNameLength } from '../../../identity/users/user-info.ts';
import type { AuditEntry } from '../../../platform/audit/audit-event.ts';
import { message, type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { auditTable } from '../elements/audit-table.ts';
import { actionForm, csrfField, textField } from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { portrait } from '../elements/portrait.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import {
  endTokensField,
  type NewPasswordProblems,
  type NewPasswordRules,
  newPasswordFields,
  type TokensChoice,
} from '../login/new-password-fields.ts';
import { type PasskeySection, passkeySection } from './passkey-section.ts';
import type { SessionEntry } from './session-list.ts';
import { sessionSection } from './session-section.ts';
import { type TokenSection, tokenSection } from './token-section.ts';

export interface AccountView {
  readonly layout: FormLayoutProps;
  readonly userName: string;
  readonly groups: readonly string[];
  readonly profile: ProfileSection;
  /** Undefined when the account has no password of its own here. */
  readonly password?: PasswordSection | undefined;
  readonly identities: readonly LinkedIdentity[];
  /** External providers that can still be linked. */
  readonly linkable: readonly { readonly authenticator: string; readonly label: Phrase }[];
  /** Undefined where second factors cannot be used. */
  readonly secondFactor?: SecondFactorStatus | undefined;
  /** Undefined where second factors cannot be used. */
  readonly passkeys?: PasskeySection | undefined;
  readonly sessions: readonly SessionEntry[];
  readonly tokens: TokenSection;
  /** What was last done with the account, newest first. */
  readonly activity: readonly AuditEntry[];
}

/** Who the user is beside the name. */
export interface ProfileSection {
  readonly displayName: string | undefined;
  readonly shownPictureUrl?: string | undefined;
  readonly email: string | undefined;
  /** The login method that tells it at each login; undefined where the user may choose. */
  readonly providedBy: Phrase | undefined;
  readonly typed?: { readonly displayName: string; readonly problem: Phrase } | undefined;
}

export interface PasswordSection {
  readonly rules: NewPasswordRules;
  readonly tokens: TokensChoice;
  readonly problems?: (NewPasswordProblems & { readonly current?: Phrase | undefined }) | undefined;
}

/** An account at a provider by which the person can log in. */
export interface LinkedIdentity {
  readonly id: string;
  readonly label: Phrase;
  readonly display: string;
  readonly linkedAt: Date;
  /** False for the last login method: without it the user could not log in again. */
  readonly mayUnlink: boolean;
}

export interface SecondFactorStatus {
  readonly isOn: boolean;
  readonly isRequired: boolean;
  /** Undefined without any second factor. */
  readonly recoveryCodesLeft: number | undefined;
}

/** The person's own account: password, passkeys, linked identities, second factor, logins, tokens. */
export function accountPage(view: AccountView): Html {
  const { layout, userName, groups, password, secondFactor, passkeys, sessions, tokens } = view;
  return pageLayout(layout, {
    title: text`Account`,
    place: 'account',
    scripts: [
      ...(password === undefined ? [] : (['password-toggle.js'] as const)),
      ...(passkeys === undefined ? [] : (['passkey.js'] as const)),
      ...(tokens.newToken === undefined ? [] : (['copy-button.js'] as const)),
    ],
    body: html`${pageHead(text`Account`, lead(userName, groups))}
${profileSection(view)}
${password && passwordSection(layout, userName, password)}
${passkeys && passkeySection(layout, passkeys)}
${secondFactor && secondFactorSection(layout, secondFactor, passkeys !== undefined && passkeys.passkeys.length > 0)}
${identitySection(view)}
${sessionSection(layout, sessions)}
${tokenSection(layout, tokens)}
${activitySection(view)}`,
  });
}

function lead(userName: string, groups: readonly string[]): Text {
  const name = html`<b>${userName}</b>`;
  if (groups.length === 0) return text`You are ${name}.`;
  return message('You are {name}, in the {count, plural, one {group} other {groups}} {groups}.', {
    name,
    count: groups.length,
    groups: groups.join(', '),
  });
}

function profileSection({ layout, profile }: AccountView): Html {
  const { displayName, email, providedBy, shownPictureUrl, typed } = profile;
  if (providedBy !== undefined) {
    const unknown = html`<span class="soft">${text`Not known`}</span>`;
    return html`<section class="block"><h2>${text`About you`}</h2><p class="soft">${text`“${providedBy}” tells this at each login. Change it there.`}</p>
${portrait(shownPictureUrl)}<dl class="facts"><dt>${text`Display name`}</dt><dd>${displayName === undefined ? unknown : html`<bdi>${displayName}</bdi>`}</dd>
<dt>${text`E-mail address`}</dt><dd>${email ?? unknown}</dd></dl></section>`;
  }
  const known =
    email === undefined
      ? text`Your e-mail address is not known. Only an administrator can set it.`
      : text`Your e-mail address is ${html`<b>${email}</b>`}. Only an administrator can change it.`;
  return html`<section class="block"><h2>${text`About you`}</h2><p class="soft">${known}</p>
${portrait(shownPictureUrl)}<form class="fields" method="post" action="${layout.urls.changeProfile}">
${csrfField(layout)}${textField({
  name: 'display_name',
  label: text`Display name`,
  value: typed?.displayName ?? displayName ?? '',
  problem: typed?.problem,
  help: text`What others read beside your user name.`,
  autocomplete: 'name',
  isOptional: true,
  maxLength: maxDisplayNameLength,
})}
<div class="actions"><button class="button">${text`Save`}</button></div>
</form></section>`;
}

function passwordSection(
  layout: FormLayoutProps,
  userName: string,
  { rules, tokens, problems }: PasswordSection,
): Html {
  return html`<section class="block"><h2>${text`Password`}</h2><p class="soft">${text`A new password logs you out everywhere else.`}</p>
<form class="fields" method="post" action="${layout.urls.changePassword}">
${csrfField(layout)}<input class="visually-hidden" type="text" name="username" value="${userName}" autocomplete="username" readonly tabindex="-1" aria-hidden="true">
${textField({
  name: 'current_password',
  label: text`Current password`,
  type: 'password',
  autocomplete: 'current-password',
  maxLength: 1024,
  problem: problems?.current,
})}
${newPasswordFields(rules, problems)}
${endTokensField(tokens)}
<div class="actions"><button class="button">${text`Change password`}</button></div>
</form></section>`;
}

function secondFactorSection(
  layout: FormLayoutProps,
  status: SecondFactorStatus,
  hasPasskeys: boolean,
): Html {
  const { urls } = layout;
  const { isOn, isRequired, recoveryCodesLeft } = status;
  const controls = isOn
    ? html`${!isRequired && html`<a class="button small danger" href="${urls.removeSecondFactor}">${text`Turn off…`}</a>`}`
    : html`<a class="button" href="${urls.secondFactor}">${text`Set up`}</a>`;
  return html`<section class="block"><h2>${text`Authenticator app`}</h2><ul class="list"><li><div class="what">
<span class="status ${isOn ? 'good' : ''}">${isOn ? message('On', {}, { context: 'state' }) : message('Off', {}, { context: 'state' })}</span>
<p>${
    isOn
      ? hasPasskeys
        ? text`A login by password asks for a code from your authenticator app or a passkey.`
        : text`A login by password asks for a code from your authenticator app.`
      : hasPasskeys
        ? text`Lets you enter a code from your phone instead of using a passkey, after your password.`
        : text`Protects your account even if your password is stolen.`
  }</p></div><div class="actions">${controls}</div></li></ul></section>
${
  recoveryCodesLeft !== undefined &&
  html`<section class="block"><h2>${text`Recovery codes`}</h2><ul class="list"><li><div class="what">
<p>${codesLeft(recoveryCodesLeft)} ${text`Each logs you in once, after your password, when your phone or passkey is lost.`}</p></div><div class="actions"><a class="button small" href="${urls.recoveryCodes}">${text`New recovery codes…`}</a></div></li></ul></section>`
}`;
}

const codesLeft = (count: number): Text =>
  count === 0
    ? text`You have no recovery codes left: make new ones now.`
    : message('You have {count, plural, one {# recovery code} other {# recovery codes}} left.', {
        count,
      });

function identitySection({ layout, identities, linkable }: AccountView): HtmlValue {
  if (identities.length === 0 && linkable.length === 0) return false;
  const { now, urls } = layout;
  return html`<section class="block"><h2>${text`Login methods`}</h2><p class="soft">${text`Accounts elsewhere that lead to this one.`}</p>
<ul class="list">${identities.map(
    ({ id, label, display, linkedAt, mayUnlink }) =>
      html`<li><div class="what"><strong>${label}</strong><p>${text`${display}, since ${timeElement(linkedAt, now)}`}</p></div>${
        mayUnlink
          ? actionForm(layout, {
              action: urls.unlinkIdentity,
              label: text`Unlink`,
              accessibleLabel: text`Unlink ${label}`,
              style: 'small danger',
              fields: { identity_id: id },
            })
          : html`<span class="small soft">${text`Your only login method`}</span>`
      }</li>`,
  )}${linkable.map(
    ({ authenticator, label }) =>
      html`<li><div class="what"><strong>${label}</strong><p>${text`Not linked`}</p></div>${actionForm(
        layout,
        {
          action: urls.linkIdentity,
          label: message('Link', {}, { context: 'action' }),
          accessibleLabel: text`Link ${label}`,
          style: 'small',
          fields: { authenticator },
        },
      )}</li>`,
  )}</ul></section>`;
}

function activitySection({ layout, userName, activity }: AccountView): HtmlValue {
  if (activity.length === 0) return false;
  return html`<section class="block"><h2>${text`Recent activity`}</h2>${auditTable(layout, activity, { caption: text`Recent activity`, isForAdministrators: false, ownName: userName })}</section>`;
}
