import { type Html, html } from '../../html.ts';
import { focusLayout } from '../layout.ts';
import type { FormFrame } from '../page-frame.ts';
import { actionForm, csrfField, hiddenFields, textField } from '../parts/form.ts';
import { notice } from '../parts/notice.ts';
import { duration } from '../parts/time.ts';

export interface SecondFactorView {
  readonly frame: FormFrame;
  readonly next?: string | undefined;
  readonly error?: string | undefined;
  readonly waitSeconds?: number | undefined;
}

/** The second step of a login: the code of an authenticator app, or a recovery code. */
export function secondFactorPage(view: SecondFactorView): Html {
  const { frame, next, error, waitSeconds } = view;
  return focusLayout(frame, {
    title: 'Enter your code',
    body: html`<div class="panel">
<header class="titles"><h1>Enter your code</h1><p class="lead">Open your authenticator app and type the six digits it shows for ${frame.hubTitle}.</p></header>
${
  waitSeconds
    ? notice('warn', `Too many attempts. Wait ${duration(waitSeconds)}, then try again.`)
    : error !== undefined && notice('bad', error)
}
<form class="fields" method="post" action="${frame.urls.loginSecondFactor}">
${csrfField(frame)}${hiddenFields({ next })}
${textField({
  name: 'code',
  label: 'Code',
  autocomplete: 'one-time-code',
  isCode: true,
  isFocused: true,
  maxLength: 32,
  help: 'Without your phone, type one of your recovery codes instead.',
})}
<button class="button primary wide">Log in</button>
</form>
</div>
<div class="aside">${actionForm(frame, { action: frame.urls.logout, label: 'Log in as somebody else', style: 'plain' })}</div>`,
  });
}
