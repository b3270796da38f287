import { csrfField, textField } from '../elements/form.ts';
import { focusLayout, pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps, LayoutProps } from '../elements/layout-props.ts';
import { type QrModules, qrCode } from '../elements/qr-code.ts';
import { copyableText, copyTexts } from '../elements/secret.ts';
import { type Html, html } from '../html.ts';

export interface SecondFactorSetUpView {
  readonly layout: FormLayoutProps;
  /** `QRCode.create(otpauthUri).modules`. */
  readonly qr: QrModules;
  /** The same secret in Base32, for typing. */
  readonly secret: string;
  /** What was wrong with the code that was sent. */
  readonly problem?: string | undefined;
}

/** The page that connects an authenticator app. The form sends `code`. */
export function secondFactorSetUpPage({
  layout,
  qr,
  secret,
  problem,
}: SecondFactorSetUpView): Html {
  const grouped = secret.replace(/(.{4})(?=.)/g, '$1 ');
  return pageLayout(layout, {
    title: 'Set up a second factor',
    place: 'account',
    scripts: ['copy-button.js'],
    body: html`${pageHead('Set up a second factor', 'You need an authenticator app on your phone, or a password manager that makes codes.')}
<form method="post" action="${layout.urls.secondFactor}">
${csrfField(layout)}
<ol class="steps">
<li><div class="stack"><h2>Scan this with your app</h2>${qrCode(qr, 'QR code for your authenticator app')}
<details class="more"><summary>Type the key instead</summary>${copyableText(grouped, 'Key')}</details></div></li>
<li><div class="stack"><h2>Type the code it shows</h2>
${textField({
  name: 'code',
  label: 'Six digits',
  autocomplete: 'one-time-code',
  isCode: true,
  maxLength: 8,
  problem,
  help: 'It changes every 30 seconds.',
})}
<div class="actions"><button class="button primary">Turn on</button><a class="button" href="${layout.urls.account}">Cancel</a></div></div></li>
</ol>
</form>`,
  });
}

export interface RecoveryCodesView {
  readonly layout: LayoutProps;
  readonly codes: readonly string[];
  /** False when older codes were replaced. */
  readonly isFirstTime: boolean;
}

/** The recovery codes, shown this one time. */
export function recoveryCodesPage({ layout, codes, isFirstTime }: RecoveryCodesView): Html {
  return focusLayout(layout, {
    title: 'Your recovery codes',
    scripts: ['copy-button.js'],
    body: html`<div class="panel">
<header class="titles"><h1>Your recovery codes</h1><p class="lead">${isFirstTime ? 'Your second factor is on.' : 'These replace the codes you had.'} Each of these codes logs you in once, if you lose your phone. Print them or keep them in a safe place: they are not shown again.</p></header>
<div class="stack"><ul class="codes" id="recovery-codes" data-copy-text="${codes.join('\n')}">${codes.map((code) => html`<li>${code}</li>`)}</ul>
<button class="button small" type="button" hidden data-copy="recovery-codes"${copyTexts}>Copy all</button></div>
<a class="button primary wide" href="${layout.urls.account}">I have saved them</a>
</div>`,
  });
}

export interface ConfirmWithCodeView {
  readonly layout: FormLayoutProps;
  readonly title: string;
  readonly lead: string;
  /** Names the action. */
  readonly label: string;
  readonly action: string;
  readonly isDestructive: boolean;
  readonly problem?: string | undefined;
}

/** Asks for a code before the second factor itself is changed. The form sends `code`. */
export function confirmWithCodePage(view: ConfirmWithCodeView): Html {
  const { layout, title, lead, label, action, isDestructive, problem } = view;
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${lead}</p></header>
<form class="fields" method="post" action="${action}">
${csrfField(layout)}
${textField({
  name: 'code',
  label: 'Code',
  autocomplete: 'one-time-code',
  isLiteral: true,
  isFocused: true,
  maxLength: 32,
  problem,
  help: 'From your authenticator app, or one of your recovery codes.',
})}
<div class="decision"><a class="button" href="${layout.urls.account}">Cancel</a><button class="button primary${isDestructive && ' danger'}">${label}</button></div>
</form>
</div>`,
  });
}
