import { type Phrase, text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields, textField } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { type Html, html } from '../html.ts';
import {
  endTokensField,
  type NewPasswordProblems,
  type NewPasswordRules,
  newPasswordFields,
  type TokensChoice,
} from './new-password-fields.ts';

export interface ChoosePasswordView {
  readonly layout: FormLayoutProps;
  readonly purpose: ChoosePasswordPurpose;
  readonly rules: NewPasswordRules;
  /** Left out for an account that is only being made. */
  readonly tokens?: TokensChoice;
  readonly problems?: (NewPasswordProblems & { readonly name?: Phrase | undefined }) | undefined;
  /** A problem that belongs to no single field. */
  readonly error?: Phrase | undefined;
}

/** Why a password is chosen outside the account page. */
export type ChoosePasswordPurpose =
  /** The one-time link of a hub without an administrator. */
  | {
      readonly kind: 'first-administrator';
      readonly secret: string;
      readonly name?: string | undefined;
    }
  /** An invitation link: the account exists and waits for its person. */
  | {
      readonly kind: 'invitation';
      readonly secret: string;
      readonly userName: string;
      readonly invitedBy?: string | undefined;
    }
  /** A link that an administrator made because the password is lost. */
  | { readonly kind: 'reset'; readonly secret: string; readonly userName: string }
  /** After a login with a password that must not be kept. */
  | { readonly kind: 'required'; readonly userName: string; readonly next?: string | undefined };

/** The page where a password is chosen: first administrator, invitation, reset, or forced. */
export function choosePasswordPage(view: ChoosePasswordView): Html {
  const { layout, purpose, rules, tokens, problems, error } = view;
  const { title, lead, button, action } = wording(view);
  return focusLayout(layout, {
    title,
    scripts: ['password-toggle.js'],
    body: html`<div class="panel">
<header class="titles"><h1>${title}</h1><p class="lead">${lead}</p></header>
${error !== undefined && notice('bad', error)}
<form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields(carried(purpose))}
${
  purpose.kind === 'first-administrator'
    ? textField({
        name: 'name',
        label: text`User name`,
        value: purpose.name,
        autocomplete: 'username',
        isLiteral: true,
        isFocused: true,
        maxLength: 255,
        problem: problems?.name,
      })
    : html`<input class="visually-hidden" type="text" name="username" value="${purpose.userName}" autocomplete="username" readonly tabindex="-1" aria-hidden="true">`
}
${newPasswordFields(rules, problems)}
${tokens !== undefined && endTokensField(tokens)}
<button class="button primary wide">${button}</button>
</form>
</div>`,
  });
}

function wording({ layout, purpose }: ChoosePasswordView): {
  readonly title: Phrase;
  readonly lead: Phrase;
  readonly button: Phrase;
  readonly action: string;
} {
  const { urls, hubTitle } = layout;
  switch (purpose.kind) {
    case 'first-administrator':
      return {
        title: text`Set up ${hubTitle}`,
        lead: text`Create the first account. It is the administrator, who can invite all others.`,
        button: text`Create the account and log in`,
        action: urls.setUp,
      };
    case 'invitation':
      return {
        title: text`Welcome, ${purpose.userName}`,
        lead: text`${purpose.invitedBy ?? text`An administrator`} made an account for you. Choose a password, and you are in.`,
        button: text`Choose password and log in`,
        action: urls.invitation,
      };
    case 'reset':
      return {
        title: text`Choose a new password`,
        lead: text`For the account ${purpose.userName}. You will be logged out everywhere else.`,
        button: text`Save and log in`,
        action: urls.invitation,
      };
    case 'required':
      return {
        title: text`Choose a new password`,
        lead: text`The one you logged in with was only meant for the first time. Choose your own to continue.`,
        button: text`Save and continue`,
        action: urls.loginPassword,
      };
  }
}

function carried(purpose: ChoosePasswordPurpose): Record<string, string | undefined> {
  return purpose.kind === 'required' ? { next: purpose.next } : { secret: purpose.secret };
}
