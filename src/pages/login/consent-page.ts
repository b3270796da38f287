import type { ConsentView } from '../../oauth/endpoints/consent-view.ts';
import { actionForm, csrfField, hiddenFields } from '../elements/form.ts';
import { icon } from '../elements/icons.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { scopeNames, scopePhrase } from '../elements/scope-words.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface ConsentPageView {
  readonly layout: FormLayoutProps;
  readonly userName: string;
  readonly consent: ConsentView;
  /** The authorization request itself, path and query: the form goes back to it. */
  readonly action: string;
}

/** The page that asks whether a client may act for the person. The form sends `decision`. */
export function consentPage({ layout, userName, consent, action }: ConsentPageView): Html {
  const { clientName, scopes, grantedScopes, redirectHost, leadsElsewhere } = consent;
  return focusLayout(layout, {
    title: `Allow ${clientName}?`,
    body: html`<div class="panel">
<header class="titles"><h1>Allow ${clientName}?</h1><p class="lead">${clientWord(consent, userName)} wants to know who you are and to act for you.</p></header>
${
  scopes.length > 0 &&
  html`<section><h2 class="visually-hidden">What it can do</h2><ul class="scopes">${scopes.map(
    (scope) => html`<li>${icon('check', 18)}<div>${scopePhrase(scope)}</div></li>`,
  )}</ul></section>`
}
${beyondOwnNotice(consent)}
${scopeNames(scopes)}
<form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields({ scopes: grantedScopes })}
<div class="decision"><button class="button" name="decision" value="deny">Deny</button><button class="button primary" name="decision" value="allow">Allow</button></div>
</form>
<p class="small soft">${leadsElsewhere && redirectHost !== '' && html`Either way you go on to <b>${redirectHost}</b>. `}What you allow ends when you log out, and you can take it back under <a href="${layout.urls.tokens}">Tokens</a>.</p>
</div>
<div class="aside">You are ${userName}. ${actionForm(layout, { action: layout.urls.logout, label: 'Not you?', style: 'plain' })}</div>`,
  });
}

const mostNamed = 6;

/** What the client could do to others: people allow their own things lightly, and rarely think of these. */
function beyondOwnNotice({ beyondOwn, isAdministration }: ConsentView): HtmlValue {
  if (beyondOwn.length === 0) return false;
  const more = beyondOwn.length - mostNamed;
  return notice(
    'warn',
    html`<div class="stack"><p><b>${
      isAdministration
        ? 'You are an administrator: it could do everything on this hub.'
        : 'This reaches beyond your own account.'
    }</b> It could:</p><ul class="allows">${beyondOwn.slice(0, mostNamed).map((scope) => html`<li>${scopePhrase(scope)}${scope.risk !== undefined && html`. <span class="soft">${scope.risk}</span>`}</li>`)}</ul>${more > 0 && html`<p>And ${more} more.</p>`}</div>`,
  );
}

function clientWord({ clientKind, ownerUserName }: ConsentView, userName: string): string {
  if (clientKind === 'service') return 'This service';
  if (ownerUserName === undefined || ownerUserName === userName) return 'This server';
  return `This server of ${ownerUserName}`;
}
