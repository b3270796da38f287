import type { Confirmation } from '../../../identity/accounts/recent-login.ts';
import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields, textField } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { passkeyForm, withoutPasskeys } from '../elements/passkey-form.ts';
import { duration } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';
import { loginField } from './login-page.ts';

export interface ConfirmLoginView {
  readonly layout: FormLayoutProps;
  readonly userName: string;
  readonly confirmation: Exclude<Confirmation, { kind: 'none' }>;
  /** Where the form goes: to what waits for the confirmation, or to the page itself. */
  readonly action: string;
  /** Carried along: the sealed form that waits, or where to go on. */
  readonly fields: Readonly<Record<string, string | undefined>>;
  readonly cancelUrl: string;
  readonly problem?: Phrase | undefined;
  /** Seconds until another attempt is accepted, after too many failures. */
  readonly waitSeconds?: number | undefined;
  /** The user name that was typed, where one is asked for. */
  readonly typedName?: string | undefined;
}

/** Asks users who are logged in to show again who they are, before what outlives their login. */
export function confirmLoginPage(view: ConfirmLoginView): Html {
  const { layout, confirmation, action, fields, problem, waitSeconds } = view;
  return focusLayout(layout, {
    title: text`Confirm it’s you`,
    scripts: scriptsOf(confirmation),
    body: html`<div class="panel">
<header class="titles"><h1>${text`Confirm it’s you`}</h1><p class="lead">${lead(view)}</p></header>
${
  waitSeconds
    ? notice('warn', text`Too many attempts. Wait ${duration(waitSeconds)}, then try again.`)
    : problem !== undefined && notice('bad', problem)
}
${isByPasskey(confirmation) ? passkeyDecision(view) : confirmationForm(view)}
${confirmation.kind === 'code' && confirmation.hasApp && confirmation.takesPasskey && passkeyForm(layout, { purpose: 'confirm', action, label: text`Use a passkey`, fields, content: html`<div class="or">${text`or`}</div>` })}
</div>`,
  });
}

function scriptsOf(confirmation: ConfirmLoginView['confirmation']) {
  if (confirmation.kind === 'form') return ['password-toggle.js'] as const;
  const takesPasskey =
    confirmation.kind === 'passkey' || (confirmation.kind === 'code' && confirmation.takesPasskey);
  return takesPasskey ? (['passkey.js'] as const) : [];
}

/** Whether a passkey is the way, and a recovery code the way out. */
function isByPasskey(confirmation: ConfirmLoginView['confirmation']): boolean {
  return (
    confirmation.kind === 'passkey' ||
    (confirmation.kind === 'code' && !confirmation.hasApp && confirmation.takesPasskey)
  );
}

function passkeyDecision({
  layout,
  confirmation,
  action,
  fields,
  cancelUrl,
}: ConfirmLoginView): Html {
  return html`${passkeyForm(layout, { purpose: 'confirm', action, label: text`Use a passkey`, style: 'primary wide', fields })}${withoutPasskeys()}
${
  confirmation.kind === 'code' &&
  html`<details class="more"><summary>${text`Use a recovery code`}</summary><form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields(fields)}${codeField({ hasApp: false, isFocused: false })}
<button class="button wide">${text`Confirm`}</button>
</form></details>`
}<a class="button wide" href="${cancelUrl}">${text`Cancel`}</a>`;
}

function confirmationForm(view: ConfirmLoginView): Html {
  const { layout, confirmation, action, fields, cancelUrl } = view;
  return html`<form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields(fields)}
${confirmation.kind === 'code' && codeField({ hasApp: confirmation.hasApp, isFocused: true })}
${confirmation.kind === 'form' && formFields(view, confirmation)}
<div class="decision"><a class="button" href="${cancelUrl}">${text`Cancel`}</a><button class="button primary">${confirmation.kind === 'external' ? text`Continue to ${confirmation.provider}` : text`Confirm`}</button></div>
</form>`;
}

function lead({ confirmation, userName }: ConfirmLoginView): Text {
  const who = html`<b>${userName}</b>`;
  switch (confirmation.kind) {
    case 'code':
      if (isByPasskey(confirmation)) break;
      return text`You’re logged in as ${who}. Enter a code to continue.`;
    case 'passkey':
      break;
    case 'form':
      return confirmation.ownsAccounts
        ? text`You’re logged in as ${who}. Enter your password to continue.`
        : text`You’re logged in as ${who}. Log in again to continue.`;
    case 'external':
      return text`You’re logged in as ${who}. Log in at ${confirmation.provider} again to continue.`;
  }
  return text`You’re logged in as ${who}. Confirm that it’s you to continue.`;
}

function codeField(field: { readonly hasApp: boolean; readonly isFocused: boolean }): Html {
  const { hasApp, isFocused } = field;
  return textField({
    name: 'code',
    label: hasApp ? text`Code` : text`Recovery code`,
    autocomplete: hasApp ? 'one-time-code' : 'off',
    isLiteral: true,
    isFocused,
    maxLength: 32,
    ...(hasApp && { help: text`From your authenticator app, or one of your recovery codes.` }),
  });
}

function formFields(
  { userName, typedName }: ConfirmLoginView,
  { method, ownsAccounts }: Extract<Confirmation, { kind: 'form' }>,
): Html {
  const asked = method.fields.filter(({ name }) => !ownsAccounts || name !== 'username');
  const focused = asked.find(({ name }) => name !== 'username');
  return html`${
    ownsAccounts &&
    html`<input class="visually-hidden" type="text" name="username" value="${userName}" autocomplete="username" readonly tabindex="-1" aria-hidden="true">`
  }${asked.map((field) =>
    loginField(field, {
      id: `confirm-${field.name}`,
      value: field.name === 'username' ? (typedName ?? userName) : undefined,
      isFocused: field === focused,
    }),
  )}`;
}

/** Goes on with a form that waited for a login elsewhere. */
export function goOnPage(view: {
  readonly layout: FormLayoutProps;
  readonly action: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly cancelUrl: string;
}): Html {
  const { layout, action, fields, cancelUrl } = view;
  return focusLayout(layout, {
    title: text`It’s you`,
    body: html`<div class="panel">
<header class="titles"><h1>${text`It’s you`}</h1><p class="lead">${text`Continue with what you were about to do.`}</p></header>
<form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields(fields)}
<div class="decision"><a class="button" href="${cancelUrl}">${text`Cancel`}</a><button class="button primary">${text`Continue`}</button></div>
</form>
</div>`,
  });
}
