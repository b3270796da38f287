import { text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';
import { type SessionEntry, sessionList } from './session-list.ts';

export interface SessionsView {
  readonly layout: FormLayoutProps;
  readonly sessions: readonly SessionEntry[];
}

/** Where the person is logged in, with a way to end each login. */
export function sessionsPage({ layout, sessions }: SessionsView): Html {
  const hasOthers = sessions.some(({ isCurrent }) => !isCurrent);
  return pageLayout(layout, {
    title: text`Sessions`,
    place: 'sessions',
    body: html`${pageHead(
      text`Where you are logged in`,
      text`Ending a login closes everything that browser has open here, at once.`,
      hasOthers &&
        actionForm(layout, {
          action: layout.urls.endOtherSessions,
          label: text`Log out everywhere else`,
          style: 'primary',
        }),
    )}
${sessionList(layout, sessions, { endUrl: layout.urls.endSession })}`,
  });
}
