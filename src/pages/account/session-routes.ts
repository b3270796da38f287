import type Router from '@koa/router';
import { HubError } from '../../errors.ts';
import type { LoginSessions } from '../../sessions/login-sessions.ts';
import { text } from '../../texts/text.ts';
import type { PageContext } from '../page-context.ts';
import { sessionsPage } from './sessions-page.ts';

/** `/hub/sessions`: where the person is logged in. */
export function sessionPageRoutes(
  router: Router,
  deps: { readonly pages: PageContext; readonly logins: LoginSessions },
): void {
  const { pages, logins } = deps;

  router.get(
    '/sessions',
    pages.loggedIn(async (ctx, login) => {
      const sessions = await logins.listOfUser(login.user.id);
      pages.send(
        ctx,
        sessionsPage({
          layout: await pages.formLayoutFor(ctx),
          sessions: sessions.map((session) => ({
            sessionId: session.sessionId,
            address: session.address,
            userAgent: session.userAgent,
            createdAt: session.createdAt,
            lastSeenAt: session.lastSeenAt,
            isCurrent: session.sessionId === login.session.sessionId,
            authenticator: session.authenticator,
          })),
        }),
      );
    }),
  );

  router.post(
    '/sessions/end',
    pages.loggedIn(async (ctx, login) => {
      const form = await pages.readForm(ctx);
      const sessions = await logins.listOfUser(login.user.id);
      const session = sessions.find(({ sessionId }) => sessionId === form.get('session_id'));
      if (session === undefined) throw new HubError('not_found', text`You have no such login.`);
      await logins.end(session.sessionId);
      pages.redirectWithNotice(ctx, pages.urls.sessions, {
        kind: 'good',
        text: text`That login has ended.`,
      });
    }),
  );

  router.post(
    '/sessions/end-others',
    pages.loggedIn(async (ctx, login) => {
      await pages.readForm(ctx);
      const ended = await logins.endAllOfUser(login.user.id, { except: login.session.sessionId });
      const outcome =
        ended === 0
          ? text`You are logged in nowhere else.`
          : text`All your other logins have ended.`;
      pages.redirectWithNotice(ctx, pages.urls.sessions, { kind: 'good', text: outcome });
    }),
  );
}
