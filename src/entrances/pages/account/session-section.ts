import { text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';
import { type SessionEntry, sessionList } from './session-list.ts';

/** Where the person is logged in, with a way to end each login. */
export function sessionSection(layout: FormLayoutProps, sessions: readonly SessionEntry[]): Html {
  const { urls } = layout;
  const hasOthers = sessions.some(({ isCurrent }) => !isCurrent);
  return html`<section class="block" id="sessions"><h2>${text`Sessions`}</h2><p class="soft">${text`Ending a login closes everything that browser has open here, at once.`}</p>
${hasOthers && html`<div class="page-notice">${actionForm(layout, { action: urls.endOtherSessions, label: text`Log out everywhere else` })}</div>`}
${sessionList(layout, sessions, { endUrl: urls.endSession })}</section>`;
}
