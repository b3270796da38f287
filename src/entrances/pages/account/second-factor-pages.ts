import { joined, type Phrase, text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields, textField } from '../elements/form.ts';
import { focusLayout, pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps, LayoutProps } from '../elements/layout-props.ts';
import { type QrModules, qrCode } from '../elements/qr-code.ts';
import { copyableText } from '../elements/secret.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface SecondFactorSetUpView {
  readonly layout: FormLayoutProps;
  /** `QRCode.create(otpauthUri).modules`. */
  readonly qr: QrModules;
  /** The same secret in Base32, for typing. */
  readonly secret: string;
  readonly state: string;
  /** What was wrong with the code that was sent. */
  readonly problem?: Phrase | undefined;
}

/** The page that connects an authenticator app. The form sends `code` and `state`. */
export function secondFactorSetUpPage(view: SecondFactorSetUpView): Html {
  const { urls } = view.layout;
  const lead = text`You need an authenticator app on your phone, or a password manager that makes codes.`;
  return pageLayout(view.layout, {
    title: text`Set up an authenticator app`,
    place: 'account',
    scripts: ['copy-button.js'],
    body: html`${pageHead(text`Set up an authenticator app`, lead)}
${appSteps(view, urls.secondFactor, html`<a class="button" href="${urls.account}">${text`Cancel`}</a>`)}`,
  });
}

/** What connects an authenticator app: the QR code, and the form for the first code. */
export function appSteps(
  { layout, qr, secret, state, problem }: SecondFactorSetUpView,
  action: string,
  furtherActions: HtmlValue = false,
): Html {
  const grouped = secret.replace(/(.{4})(?=.)/g, '$1 ');
  return html`<form method="post" action="${action}">
${csrfField(layout)}${hiddenFields({ state })}
<ol class="steps">
<li><div class="stack"><h2>${text`Scan this with your app`}</h2>${qrCode(qr, text`QR code for your authenticator app`)}
<details class="more"><summary>${text`Type the key instead`}</summary>${copyableText(grouped, text`Key`)}</details></div></li>
<li><div class="stack"><h2>${text`Type the code it shows`}</h2>
${textField({
  name: 'code',
  label: text`Six digits`,
  autocomplete: 'one-time-code',
  isCode: true,
  maxLength: 8,
  problem,
  help: text`It changes every 30 seconds.`,
})}
<div class="actions"><button class="button primary">${text`Turn on`}</button>${furtherActions}</div></div></li>
</ol>
</form>`;
}

export interface RecoveryCodesView {
  readonly layout: LayoutProps;
  readonly codes: readonly string[];
  /** What they come with; codes that are renewed replace others. */
  readonly after: 'app' | 'passkey' | 'renewal';
  /** Where it leads on; the account page by default. */
  readonly next?: string;
}

/** The recovery codes, shown this one time. */
export function recoveryCodesPage({ layout, codes, after, next }: RecoveryCodesView): Html {
  const lead = joined([
    whatIsDone[after],
    text`Each of these codes logs you in once, after your password, when your phone or passkey is lost. Print them or keep them in a safe place: they are not shown again.`,
  ]);
  return focusLayout(layout, {
    title: text`Your recovery codes`,
    scripts: ['copy-button.js'],
    body: html`<div class="panel">
<header class="titles"><h1>${text`Your recovery codes`}</h1><p class="lead">${lead}</p></header>
<div class="stack"><ul class="codes" id="recovery-codes" data-copy-text="${codes.join('\n')}">${codes.map((code) => html`<li>${code}</li>`)}</ul>
<button class="button small" type="button" hidden data-copy="recovery-codes">${text`Copy all`}</button></div>
<a class="button primary wide" href="${next ?? layout.urls.account}">${text`I have saved them`}</a>
</div>`,
  });
}

const whatIsDone: Readonly<Record<RecoveryCodesView['after'], Phrase>> = {
  app: text`Your authenticator app is on.`,
  passkey: text`Your passkey is added.`,
  renewal: text`These replace the codes you had.`,
};

export interface ConfirmWithCodeView {
  readonly layout: FormLayoutProps;
  readonly title: Phrase;
  readonly lead: Phrase;
  /** Names the action. */
  readonly label: Phrase;
  readonly action: string;
  readonly isDestructive: boolean;
  /** False for users without an app, who confirm by other means. */
  readonly asksForCode: boolean;
  readonly problem?: Phrase | undefined;
}

/** Asks before the second factor itself is changed. The form sends `code`. */
export function confirmWithCodePage(view: ConfirmWithCodeView): Html {
  const { layout, title, lead, label, action, isDestructive, asksForCode, problem } = view;
  return focusLayout(layout, {
    title,
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${asksForCode ? joined([lead, text`Type a code to show that it is you.`]) : lead}</p></header>
<form class="fields" method="post" action="${action}">
${csrfField(layout)}
${
  asksForCode &&
  textField({
    name: 'code',
    label: text`Code`,
    autocomplete: 'one-time-code',
    isLiteral: true,
    isFocused: true,
    maxLength: 32,
    problem,
    help: text`From your authenticator app, or one of your recovery codes.`,
  })
}
<div class="decision"><a class="button" href="${layout.urls.account}">${text`Cancel`}</a><button class="button primary${isDestructive && ' danger'}">${label}</button></div>
</form>
</div>`,
  });
}
