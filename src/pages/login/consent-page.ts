import type { ConsentView } from '../../oauth/endpoints/consent-view.ts';
import { actionForm, csrfField, hiddenFields } from '../elements/form.ts';
import { icon } from '../elements/icons.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

export interface ConsentPageView {
  readonly layout: FormLayoutProps;
  readonly userName: string;
  readonly consent: ConsentView;
  /** The authorization request itself, path and query: the form goes back to it. */
  readonly action: string;
}

/** The page that asks whether a client may act for the person. The form sends `decision`. */
export function consentPage({ layout, userName, consent, action }: ConsentPageView): Html {
  const { clientName, scopes, grantedScopes, redirectHost } = consent;
  return focusLayout(layout, {
    title: `Allow ${clientName}?`,
    body: html`<div class="panel">
<header class="titles"><h1>Allow ${clientName}?</h1><p class="lead">${clientWord(consent, userName)} wants to know who you are and to act for you.</p></header>
${
  scopes.length > 0 &&
  html`<section><h2 class="visually-hidden">What it can do</h2><ul class="scopes">${scopes.map(
    ({ scope, description, restriction }) =>
      html`<li>${icon('check', 18)}<div>${description}${restriction !== undefined && html` <span class="soft">(${restriction})</span>`}<code>${scope}</code></div></li>`,
  )}</ul></section>`
}
<form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields({ scopes: grantedScopes })}
<div class="decision"><button class="button" name="decision" value="deny">Deny</button><button class="button primary" name="decision" value="allow">Allow</button></div>
</form>
<p class="small soft">Either way you go on${redirectHost !== '' && html` to <b>${redirectHost}</b>`}. What you allow ends when you log out, and you can take it back under <a href="${layout.urls.tokens}">Tokens</a>.</p>
</div>
<div class="aside">You are ${userName}. ${actionForm(layout, { action: layout.urls.logout, label: 'Not you?', style: 'plain' })}</div>`,
  });
}

function clientWord({ clientKind, ownerUserName }: ConsentView, userName: string): string {
  if (clientKind === 'service') return 'This service';
  if (ownerUserName === undefined || ownerUserName === userName) return 'This server';
  return `This server of ${ownerUserName}`;
}
