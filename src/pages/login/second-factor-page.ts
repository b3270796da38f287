import { actionForm, csrfField, hiddenFields, textField } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { duration } from '../elements/time.ts';
import { type Html, html } from '../html.ts';

export interface SecondFactorView {
  readonly layout: FormLayoutProps;
  readonly next?: string | undefined;
  readonly error?: string | undefined;
  readonly waitSeconds?: number | undefined;
  /** Whether it asks for a recovery code, which the keys of a telephone could not type. */
  readonly isRecovery?: boolean;
}

/** The second step of a login: the code of an authenticator app, or a recovery code. */
export function secondFactorPage(view: SecondFactorView): Html {
  const { layout, next, error, waitSeconds, isRecovery = false } = view;
  const { urls } = layout;
  const title = isRecovery ? 'Enter a recovery code' : 'Enter your code';
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${isRecovery ? 'One of those you saved when you set up your second factor. Each works once.' : `Open your authenticator app and type the six digits it shows for ${layout.hubTitle}.`}</p></header>
${
  waitSeconds
    ? notice('warn', `Too many attempts. Wait ${duration(waitSeconds)}, then try again.`)
    : error !== undefined && notice('bad', error)
}
<form class="fields" method="post" action="${urls.loginSecondFactor}">
${csrfField(layout)}${hiddenFields({ next, with: isRecovery ? 'recovery-code' : undefined })}
${isRecovery ? recoveryCodeField() : appCodeField()}
<button class="button primary wide">Log in</button>
</form>
<p class="small">${isRecovery ? html`<a href="${urls.loginSecondFactor}">Use my authenticator app</a>` : html`<a href="${urls.loginSecondFactor}?with=recovery-code">Use a recovery code</a>`}</p>
</div>
<div class="aside">${actionForm(layout, { action: urls.logout, label: 'Log in as another user', style: 'plain' })}</div>`,
  });
}

function appCodeField(): Html {
  return textField({
    name: 'code',
    label: 'Code',
    autocomplete: 'one-time-code',
    isCode: true,
    isFocused: true,
    maxLength: 8,
  });
}

function recoveryCodeField(): Html {
  return textField({
    name: 'code',
    label: 'Recovery code',
    autocomplete: 'off',
    isLiteral: true,
    isFocused: true,
    maxLength: 32,
  });
}
