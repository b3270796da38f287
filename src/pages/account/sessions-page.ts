import { actionForm } from '../elements/form.ts';
import { layout, pageHead } from '../elements/layout.ts';
import type { FormFrame } from '../elements/page-frame.ts';
import { type Html, html } from '../html.ts';
import { type SessionEntry, sessionList } from './session-list.ts';

export interface SessionsView {
  readonly frame: FormFrame;
  readonly sessions: readonly SessionEntry[];
}

/** Where the person is logged in, with a way to end each login. */
export function sessionsPage({ frame, sessions }: SessionsView): Html {
  const hasOthers = sessions.some(({ isCurrent }) => !isCurrent);
  return layout(frame, {
    title: 'Sessions',
    place: 'sessions',
    body: html`${pageHead(
      'Where you are logged in',
      'Ending a login closes everything that browser has open here, at once.',
      hasOthers &&
        actionForm(frame, {
          action: frame.urls.endOtherSessions,
          label: 'Log out everywhere else',
          style: 'primary',
        }),
    )}
${sessionList(frame, sessions, { endUrl: frame.urls.endSession })}`,
  });
}
