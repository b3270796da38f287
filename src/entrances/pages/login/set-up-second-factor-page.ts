import { text } from '../../../platform/texts/text.ts';
import { appSteps, type SecondFactorSetUpView } from '../account/second-factor-pages.ts';
import { actionForm } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import { passkeyForm } from '../elements/passkey-form.ts';
import { type Html, html } from '../html.ts';

/** The last step of a login for which a second factor is compulsory and missing. */
export function setUpSecondFactorPage(
  view: SecondFactorSetUpView & { readonly takesPasskeys: boolean },
): Html {
  const { layout, takesPasskeys } = view;
  const { urls } = layout;
  return focusLayout(layout, {
    title: text`Set up a second factor`,
    scripts: takesPasskeys ? ['copy-button.js', 'passkey.js'] : ['copy-button.js'],
    body: html`<div class="panel">
<header class="titles"><h1>${text`Set up a second factor`}</h1><p class="lead">${text`Your account needs one besides the password. You are logged in as soon as it is set up.`}</p></header>
${
  takesPasskeys &&
  html`${passkeyForm(layout, {
    purpose: 'set-up',
    action: urls.loginSetUp,
    label: text`Add a passkey`,
    style: 'wide',
  })}<p class="soft">${text`Or use an authenticator app on your phone.`}</p>`
}
${appSteps(view, urls.loginSetUp)}
</div>
<div class="aside">${actionForm(layout, { action: urls.logout, label: text`Log in as another user`, style: 'plain' })}</div>`,
  });
}
