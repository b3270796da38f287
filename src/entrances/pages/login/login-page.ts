import { loginLabels } from '../../../identity/authentication/login-labels.ts';
import {
  joined,
  localizedPhrase,
  message,
  type Phrase,
  text,
} from '../../../platform/texts/text.ts';
import type { LoginField, LoginMethod } from '../../../plugin/host/authenticator.ts';
import { brandingOf, customFragment, icon } from '../elements/brand.ts';
import { csrfField, hiddenFields, textField } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { linkedText } from '../elements/linked-text.ts';
import { notice } from '../elements/notice.ts';
import { passkeyForm } from '../elements/passkey-form.ts';
import { afterDuration } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface LoginView {
  readonly layout: FormLayoutProps;
  /** In the order of the configuration. */
  readonly choices: readonly LoginChoice[];
  /** The authenticator whose users may log in by a passkey alone. */
  readonly passkeysOf?: string | undefined;
  /** Where the login leads, already checked. */
  readonly next?: string | undefined;
  /** Why the last attempt failed; the same whether or not the user exists. */
  readonly error?: Phrase | undefined;
  /** Which authenticator's form was sent, so that the message stands above it. */
  readonly failedAuthenticator?: string | undefined;
  /** Seconds until another attempt is accepted, after too many failures. */
  readonly waitSeconds?: number | undefined;
  /** The form that was sent. What was typed is shown again, unless it is secret. */
  readonly typed?: URLSearchParams | undefined;
}

/** One configured authenticator on the login page. */
export interface LoginChoice {
  readonly authenticator: string;
  readonly method: LoginMethod;
  /** Set while its provider cannot be reached. */
  readonly isUnavailable?: boolean;
}

/** The login page: the form or button of every authenticator, in their order. */
export function loginPage(view: LoginView): Html {
  const { layout, choices, passkeysOf, next } = view;
  const takesPasskeys = passkeysOf !== undefined;
  const firstUsable = choices.find(({ isUnavailable }) => !isUnavailable);
  const primary = choices.find(({ method }) => method.kind === 'form') ?? firstUsable;
  return focusLayout(layout, {
    title: text`Log in`,
    scripts: [
      ...(choices.some(asksForPassword) ? (['password-toggle.js'] as const) : []),
      ...(takesPasskeys ? (['passkey.js'] as const) : []),
    ],
    body: withCustomPage(
      layout,
      html`<div class="panel">
<h1>${text`Log in`}</h1>
${customLabels(layout)}${problem(view)}
${choices.length === 0 && html`<p class="soft">${text`No one can log in here yet. Your administrator has to set up a login method.`}</p>`}
${choices.map((choice, index) => choiceMarkup(view, { choice, index, isPrimary: choice === primary }))}
${takesPasskeys && passkeyForm(layout, { purpose: 'login', action: layout.urls.loginPasskey, label: text`Log in with a passkey`, fields: { next }, content: html`<div class="or">${message('or', {}, { context: 'between ways to log in' })}</div>` })}
${termsOf(layout)}</div>`,
    ),
  });
}

/** The panel, where the operator's own page puts it. */
function withCustomPage(layout: FormLayoutProps, panel: Html): Html {
  return html`${customFragment(layout, 'login', { values: { login_form: panel }, instead: panel })}`;
}

function customLabels(layout: FormLayoutProps): HtmlValue {
  const { loginMessage } = brandingOf(layout);
  return html`${loginMessage !== undefined && html`<p class="own-words">${linkedText(loginMessage)}</p>\n`}${customFragment(layout, 'login-intro', { around: (intro) => html`<div class="own-part">${intro}</div>\n` })}`;
}

function termsOf(layout: FormLayoutProps): HtmlValue {
  const { termsUrl } = brandingOf(layout);
  return (
    termsUrl !== undefined &&
    html`<p class="small soft">${text`By logging in you accept the ${html`<a href="${localizedPhrase(termsUrl)}">${text`terms of use`}</a>`}.`}</p>\n`
  );
}

function asksForPassword({ method }: LoginChoice): boolean {
  return method.kind === 'form' && method.fields.some(({ type }) => type === 'password');
}

function problem({ error, waitSeconds }: LoginView): HtmlValue {
  if (waitSeconds !== undefined && waitSeconds > 0) {
    const wait = text`Try again ${afterDuration(waitSeconds)}.`;
    return notice('warn', joined([error ?? text`Too many attempts.`, wait]));
  }
  return error !== undefined && notice('bad', error);
}

interface PlacedChoice {
  readonly choice: LoginChoice;
  readonly index: number;
  readonly isPrimary: boolean;
}

function choiceMarkup(view: LoginView, placed: PlacedChoice): Html {
  const { choice, index } = placed;
  const previous = view.choices[index - 1];
  const needsDivider =
    previous !== undefined && (previous.method.kind === 'form' || choice.method.kind === 'form');
  return html`${needsDivider && html`<div class="or">${message('or', {}, { context: 'between ways to log in' })}</div>`}
${choice.method.kind === 'form' ? formOf(view, placed, choice.method) : buttonOf(view, placed)}`;
}

function formOf(
  view: LoginView,
  { choice, index, isPrimary }: PlacedChoice,
  method: Extract<LoginMethod, { kind: 'form' }>,
): Html {
  const { layout, next, typed, failedAuthenticator } = view;
  const hasSent =
    failedAuthenticator === undefined
      ? typed !== undefined
      : failedAuthenticator === choice.authenticator;
  const focused = hasSent
    ? method.fields.find((field) => field.type !== 'text')
    : index === 0 && method.fields[0];
  return html`<form class="fields" method="post" action="${layout.urls.login}">
${csrfField(layout)}${hiddenFields({ authenticator: choice.authenticator, next })}
${view.choices.filter((other) => other.method.kind === 'form').length > 1 && html`<h2>${loginLabels(method.label)}</h2>`}
${method.fields.map((field) =>
  loginField(field, {
    id: `login-${index}-${field.name}`,
    value: hasSent && field.type === 'text' ? (typed?.get(field.name) ?? undefined) : undefined,
    isFocused: field === focused,
    offersPasskeys: choice.authenticator === view.passkeysOf,
  }),
)}
${choice.isUnavailable && unavailableNote(loginLabels(method.label))}
<button class="button wide${isPrimary && ' primary'}">${text`Log in`}</button>
</form>`;
}

export function loginField(
  field: LoginField,
  {
    id,
    value,
    isFocused,
    offersPasskeys = false,
  }: {
    readonly id: string;
    readonly value: string | undefined;
    readonly isFocused: boolean;
    /** Whether browsers offer passkeys where they fill in the user name (Web Authentication Level 3 §5.1.4). */
    readonly offersPasskeys?: boolean;
  },
): Html {
  const isName = field.autocomplete === 'username';
  return textField({
    id,
    name: field.name,
    label: loginLabels(field.label),
    type: field.type === 'password' ? 'password' : 'text',
    value,
    isFocused,
    autocomplete: offersPasskeys && isName ? 'username webauthn' : field.autocomplete,
    isOptional: field.optional ?? false,
    isCode: field.type === 'one-time-code',
    isLiteral: true,
    maxLength: 1024,
  });
}

function buttonOf(view: LoginView, { choice, isPrimary }: PlacedChoice): Html {
  const { authenticator, method, isUnavailable } = choice;
  const url = view.layout.urls.loginWith(authenticator, view.next);
  const mark = icon(method.kind === 'external' ? (method.icon ?? 'generic') : 'generic');
  return html`<div class="way stack">
<a class="button wide${isPrimary && ' primary'}" href="${url}">${mark}${loginLabels(method.label)}</a>
${isUnavailable && unavailableNote(loginLabels(method.label))}
</div>`;
}

function unavailableNote(label: Phrase): Html {
  return html`<p class="small soft" role="status">${text`“${label}” does not answer at the moment. You can try it, or use another way if there is one.`}</p>`;
}
