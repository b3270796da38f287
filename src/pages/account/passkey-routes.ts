import type Router from '@koa/router';
import { type Passkeys, passkeyAnswerOf } from '../../accounts/passkeys.ts';
import type { LoginSessions } from '../../sessions/login-sessions.ts';
import { text } from '../../texts/text.ts';
import type { PasswordCredentialStore } from '../../users/password-credential-store.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import { recoveryCodesPage } from './second-factor-pages.ts';
import { requirePassword } from './second-factor-routes.ts';

/** `/hub/account/passkeys`: adding, renaming and removing one's own passkeys. */
export function passkeyRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly confirmLogin: ConfirmLogin;
    readonly passkeys: Passkeys;
    readonly logins: Pick<LoginSessions, 'endAllOfUser'>;
    readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  },
): void {
  const { pages, confirmLogin, passkeys } = deps;
  const back = `${pages.urls.account}#passkeys`;

  router.post(
    '/account/passkeys',
    confirmLogin.change(async (ctx, { user, session }, form) => {
      await requirePassword(deps.credentials, user);
      const answer = passkeyAnswerOf(form, session.sessionId);
      const codes = await passkeys.add(user, answer, form.get('name') ?? '');
      if (codes !== undefined) {
        const layout = await pages.layoutFor(ctx);
        return pages.send(ctx, recoveryCodesPage({ layout, codes, after: 'passkey', next: back }));
      }
      pages.redirectWithNotice(ctx, back, { kind: 'good', text: text`Your passkey is added.` });
    }),
  );

  router.post(
    '/account/passkeys/rename',
    pages.loggedIn(async (ctx, { user }) => {
      const form = await pages.readForm(ctx);
      await passkeys.rename(user.id, form.get('passkey') ?? '', form.get('name') ?? '');
      pages.redirectWithNotice(ctx, back, { kind: 'good', text: text`Your passkey is renamed.` });
    }),
  );

  router.post(
    '/account/passkeys/remove',
    confirmLogin.change(async (ctx, { user, session }, form) => {
      await passkeys.remove(user, form.get('passkey') ?? '');
      // Whoever has a passkey that was lost may be logged in with it.
      await deps.logins.endAllOfUser(user.id, { except: session.sessionId });
      pages.redirectWithNotice(ctx, back, {
        kind: 'good',
        text: text`The passkey is removed. All other browsers are logged out.`,
      });
    }),
  );
}
