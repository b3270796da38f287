import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { actionForm, csrfField, hiddenFields, textField } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { passkeyForm, withoutPasskeys } from '../elements/passkey-form.ts';
import { duration } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';

/** What the user has. */
export interface FactorsOffered {
  /** Of an authenticator app. */
  readonly code: boolean;
  readonly passkey: boolean;
  readonly recoveryCode: boolean;
}

export interface SecondFactorView {
  readonly layout: FormLayoutProps;
  readonly next?: string | undefined;
  readonly error?: Phrase | undefined;
  readonly waitSeconds?: number | undefined;
  readonly offers: FactorsOffered;
  /** Whether it asks for a recovery code, which the keys of a telephone could not type. */
  readonly isRecovery?: boolean;
}

/** The second step of a login: a passkey, the code of an authenticator app, or a recovery code. */
export function secondFactorPage(view: SecondFactorView): Html {
  const { layout, error, waitSeconds, offers, isRecovery = false } = view;
  const { urls } = layout;
  const hasForm = offers.code || isRecovery;
  const hasPasskey = offers.passkey && !isRecovery;
  const title = isRecovery
    ? text`Enter a recovery code`
    : offers.code
      ? text`Enter your code`
      : text`Use your passkey`;
  return focusLayout(layout, {
    title,
    scripts: hasPasskey ? ['passkey.js'] : [],
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${leadOf(view)}</p></header>
${
  waitSeconds
    ? notice('warn', text`Too many attempts. Wait ${duration(waitSeconds)}, then try again.`)
    : error !== undefined && notice('bad', error)
}
${hasForm && codeForm(view)}
${
  hasPasskey &&
  passkeyForm(layout, {
    purpose: 'second-factor',
    action: urls.loginSecondFactor,
    label: text`Use a passkey`,
    style: hasForm ? 'wide' : 'primary wide',
    content: hasForm && html`<div class="or">${text`or`}</div>`,
  })
}
${!hasForm && html`${withoutPasskeys()}${offers.recoveryCode && recoveryLink(view)}`}
</div>
<div class="aside">${actionForm(layout, { action: urls.logout, label: text`Log in as another user`, style: 'plain' })}</div>`,
  });
}

function leadOf({ layout, offers, isRecovery = false }: SecondFactorView): Text {
  if (isRecovery) {
    return text`One of those you saved when you set up your second factor. Each works once.`;
  }
  return !offers.code
    ? text`Your password was right. Now show that it is you.`
    : text`Open your authenticator app and type the six digits it shows for ${layout.hubTitle}.`;
}

function codeForm(view: SecondFactorView): Html {
  const { layout, next, offers, isRecovery = false } = view;
  const { urls } = layout;
  return html`<form class="fields" method="post" action="${urls.loginSecondFactor}">
${csrfField(layout)}${hiddenFields({ next, with: isRecovery ? 'recovery-code' : undefined })}
${isRecovery ? recoveryCodeField() : appCodeField()}
<button class="button primary wide">${text`Log in`}</button>
</form>
${isRecovery ? html`<p class="small"><a href="${urls.loginSecondFactor}">${usualFactors(offers)}</a></p>` : recoveryLink(view)}`;
}

function usualFactors({ code, passkey }: FactorsOffered): Text {
  if (!code) return text`Use my passkey`;
  return passkey ? text`Use my authenticator app or passkey` : text`Use my authenticator app`;
}

function recoveryLink({ layout: { urls } }: SecondFactorView): Html {
  return html`<p class="small"><a href="${urls.loginSecondFactor}?with=recovery-code">${text`Use a recovery code`}</a></p>`;
}

function appCodeField(): Html {
  return textField({
    name: 'code',
    label: text`Code`,
    autocomplete: 'one-time-code',
    isCode: true,
    isFocused: true,
    maxLength: 8,
  });
}

function recoveryCodeField(): Html {
  return textField({
    name: 'code',
    label: text`Recovery code`,
    autocomplete: 'off',
    isLiteral: true,
    isFocused: true,
    maxLength: 32,
  });
}
