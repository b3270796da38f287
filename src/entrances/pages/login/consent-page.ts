import type { ConsentView } from '../../../identity/oauth/endpoints/consent-view.ts';
import type { ShownDeviceRequest } from '../../../identity/oauth/endpoints/device-verification.ts';
import { offlineScope } from '../../../identity/oauth/requested-scopes.ts';
import { type Text, text } from '../../../platform/texts/text.ts';
import { icon } from '../elements/brand.ts';
import { actionForm, csrfField, hiddenFields } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { scopeNames, scopePhrase } from '../elements/scope-labels.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface ConsentPageView {
  readonly layout: FormLayoutProps;
  readonly userName: string;
  readonly consent: ConsentView;
  /** The authorization request itself, path and query: the form goes back to it. */
  readonly action: string;
  /** Where a device asks, and not the page of an app. */
  readonly device?: Pick<ShownDeviceRequest, 'userCode' | 'address'> | undefined;
}

/** The page that asks whether a client may act for the person. The form sends `decision`. */
export function consentPage({ layout, userName, consent, action, device }: ConsentPageView): Html {
  const { clientName, scopes, grantedScopes, redirectHost, leavesHub } = consent;
  return focusLayout(layout, {
    title: text`Allow ${clientName}?`,
    body: html`<div class="panel">
<header class="titles"><h1>${text`Allow ${clientName}?`}</h1><p class="lead">${device ? text`It wants to know who you are and to act for you.` : leadOf(consent, userName)}</p></header>
${device && deviceNotice(device)}
${
  scopes.length > 0 &&
  html`<section><h2 class="visually-hidden">${text`What it can do`}</h2><ul class="scopes">${scopes.map(
    (scope) => html`<li>${icon('check', 18)}<div>${scopePhrase(scope)}</div></li>`,
  )}</ul></section>`
}
${exceedingOwnNotice(consent)}
${scopeNames(scopes)}
<form class="fields" method="post" action="${action}">
${csrfField(layout)}${hiddenFields({ scopes: grantedScopes, user_code: device?.userCode })}
<div class="decision"><button class="button" name="decision" value="deny">${text`Deny`}</button><button class="button primary" name="decision" value="allow">${text`Allow`}</button></div>
</form>
<p class="small soft">${leavesHub && redirectHost !== '' && html`${text`Either way you continue to ${html`<b>${redirectHost}</b>`}.`} `}${grantedScopes.includes(offlineScope) ? text`What you allow goes on after you log out, until you take it back under ${html`<a href="${layout.urls.tokens}">${text`Tokens`}</a>`}.` : text`What you allow ends when you log out, and you can take it back under ${html`<a href="${layout.urls.tokens}">${text`Tokens`}</a>`}.`}</p>
</div>
<div class="aside">${text`You are ${userName}.`} ${actionForm(layout, { action: layout.urls.logout, label: text`Not you?`, style: 'plain' })}</div>`,
  });
}

/** Who was sent the link by somebody else would let that one in (RFC 8628 §5.4). */
const deviceNotice = ({ userCode, address }: Pick<ShownDeviceRequest, 'userCode' | 'address'>) =>
  notice(
    'warn',
    html`<div class="stack"><p>${text`A device or command line asked for this, from the address ${html`<b>${address}</b>`}. It shows the code ${html`<b>${userCode}</b>`}.`}</p><p>${text`Deny if you did not just begin this yourself, or if somebody sent you the link or the code.`}</p></div>`,
  );

const maxNamed = 6;

/** What the client could do to others: people allow their own things lightly, and rarely think of these. */
function exceedingOwnNotice({ exceedingOwn, isAdministration }: ConsentView): HtmlValue {
  if (exceedingOwn.length === 0) return false;
  const more = exceedingOwn.length - maxNamed;
  return notice(
    'warn',
    html`<div class="stack"><p><b>${
      isAdministration
        ? text`You are an administrator: it could do everything on this hub.`
        : text`This reaches beyond your own account.`
    }</b> ${text`It could:`}</p><ul class="allows">${exceedingOwn.slice(0, maxNamed).map((scope) => html`<li>${scopePhrase(scope)}${scope.risk !== undefined && html`. <span class="soft">${scope.risk}</span>`}</li>`)}</ul>${more > 0 && html`<p>${text`And ${more} more.`}</p>`}</div>`,
  );
}

function leadOf({ clientKind, ownerUserName, agent }: ConsentView, userName: string): Text {
  if (agent !== undefined) {
    const [host, title] = [html`<b>${agent.host}</b>`, html`<b>${agent.resourceTitle}</b>`];
    return agent.resourceKind === 'service'
      ? text`This agent of ${host} wants to know who you are and to use the service ${title} as you.`
      : text`This agent of ${host} wants to know who you are and to use the server ${title} as you.`;
  }
  if (clientKind === 'service') {
    return text`This service wants to know who you are and to act for you.`;
  }
  return ownerUserName === undefined || ownerUserName === userName
    ? text`This server wants to know who you are and to act for you.`
    : text`This server of ${ownerUserName} wants to know who you are and to act for you.`;
}
