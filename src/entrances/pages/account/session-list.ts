import { type Text, text } from '../../../platform/texts/text.ts';
import { deviceName } from '../elements/device.ts';
import { actionForm } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';

/** One browser's login. */
export interface SessionEntry {
  readonly sessionId: string;
  readonly userAgent: string;
  readonly address: string;
  readonly authenticator?: string | undefined;
  readonly createdAt: Date;
  readonly lastSeenAt: Date;
  readonly isCurrent: boolean;
}

/** Logins with device, address and times; each form sends `session_id` to `endUrl`. */
export function sessionList(
  layout: FormLayoutProps,
  sessions: readonly SessionEntry[],
  { endUrl }: { readonly endUrl: string },
): Html {
  return html`<ul class="list">${sessions.map((session) => {
    const device = deviceName(session.userAgent);
    return html`<li><div class="what"><strong title="${session.userAgent}">${device}</strong> ${session.isCurrent && html`<span class="tag">${text`This browser`}</span>`}
<p>${originOf(session)} ${text`Logged in ${timeElement(session.createdAt, layout.now)}, last seen ${timeElement(session.lastSeenAt, layout.now)}.`}</p></div>
${
  session.isCurrent
    ? actionForm(layout, { action: layout.urls.logout, label: text`Log out`, style: 'small' })
    : actionForm(layout, {
        action: endUrl,
        label: text`End`,
        accessibleLabel: text`End the login of ${device} from ${session.address}`,
        style: 'small danger',
        fields: { session_id: session.sessionId },
      })
}</li>`;
  })}</ul>`;
}

function originOf({ address, authenticator }: SessionEntry): Text {
  const from = html`<span class="mono">${address}</span>`;
  return authenticator ? text`From ${from}, by ${authenticator}.` : text`From ${from}.`;
}
