import { text } from '../../../platform/texts/text.ts';
import type { BoundPages } from '../forms/binding.ts';
import { sessionsPage } from './sessions-page.ts';

/** `/hub/sessions`: where the person is logged in. */
export function sessionPageRoutes({ page, form, pages: { urls } }: BoundPages): void {
  page('/sessions', 'viewOwnSessions', ({ layout, model: sessions }) =>
    sessionsPage({ layout, sessions }),
  );

  form('/sessions/end', 'endSession', {
    params: (sent, { caller }) => ({ name: caller.owner.name, id: sent.get('session_id') ?? '' }),
    done: () => ({ to: urls.sessions, say: text`That login has ended.` }),
    isGone: () => ({ to: urls.sessions, say: text`This login has ended already.`, kind: 'bad' }),
  });

  form('/sessions/end-others', 'endSessions', {
    params: (_sent, { caller }) => ({ name: caller.owner.name }),
    query: () => ({ keep_current: '1' }),
    done: () => ({ to: urls.sessions, say: text`All your other logins have ended.` }),
  });
}
