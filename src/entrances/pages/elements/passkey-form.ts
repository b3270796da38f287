import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { csrfField, hiddenFields } from './form.ts';
import type { FormLayoutProps } from './layout-props.ts';

/** What a page asks a passkey for: `add` and `set-up` make one. */
export type PasskeyFormPurpose = 'login' | 'second-factor' | 'confirm' | 'add' | 'set-up';

/**
 * A form that a browser completes with a passkey; hidden unless scripts run and the browser has passkeys. It
 * sends `passkey_state` and `passkey_response`. The page links `passkey.js`.
 */
export function passkeyForm(
  layout: FormLayoutProps,
  form: {
    readonly purpose: PasskeyFormPurpose;
    readonly action: string;
    readonly label: Phrase;
    /** Further classes of the button. */
    readonly style?: string;
    readonly fields?: Readonly<Record<string, string | undefined>>;
    /** Stands before the form, and is hidden with it. */
    readonly content?: HtmlValue;
  },
): Html {
  const { purpose, action, label, style = 'wide', fields = {}, content } = form;
  return html`<form class="fields" method="post" action="${action}" hidden data-passkey="${purpose}" data-question="${layout.urls.passkeyQuestion}" data-cancelled="${text`No passkey was given. Try again.`}" data-known="${text`This device has a passkey for this account already.`}" data-failed="${text`That did not work. Reload the page and try again.`}">
${csrfField(layout)}${hiddenFields({ ...fields, passkey_state: '', passkey_response: '' })}${content}
<button class="button ${style}">${label}</button>
<p class="problem" role="alert"></p>
</form>`;
}

/** Says what is missing where nothing but a passkey helps. */
export function withoutPasskeys(): Html {
  return html`<p class="soft" data-without-passkeys>${text`This browser cannot use passkeys, or scripts are switched off. Use the browser or the device where you added yours.`}</p>`;
}
