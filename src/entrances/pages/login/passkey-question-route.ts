import type Router from '@koa/router';
import type { Context } from 'koa';
import type { PartialLogins } from '../../../identity/accounts/partial-logins.ts';
import type { PasskeyLogin } from '../../../identity/accounts/passkey-login.ts';
import type { PasskeyQuestion, Passkeys } from '../../../identity/accounts/passkeys.ts';
import { requirePassword } from '../../../identity/accounts/second-factors.ts';
import { loginOf } from '../../../identity/sessions/session-middleware.ts';
import type { PasswordCredentialStore } from '../../../identity/users/password-credential-store.ts';
import { HubError } from '../../../platform/errors.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PasskeyFormPurpose } from '../elements/passkey-form.ts';
import type { PageContext } from '../page-context.ts';
import type { LogIn } from './log-in.ts';

/** `/hub/passkey-question`: what the script of a page asks before it asks for a passkey. */
export function passkeyQuestionRoute(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly logIn: Pick<LogIn, 'keyOf'>;
    readonly partialLogins: Pick<PartialLogins, 'find'>;
    readonly passkeys: Pick<Passkeys, 'ask' | 'askForNew'>;
    readonly passkeyLogin: Pick<PasskeyLogin, 'method'>;
    readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  },
): void {
  const { pages, passkeys } = deps;

  /** Each purpose has what ties its answer to the browser that asked: a form, a login under way, a login. */
  const questions: Readonly<
    Record<PasskeyFormPurpose, (ctx: Context, form: URLSearchParams) => Promise<PasskeyQuestion>>
  > = {
    async login(_ctx, form) {
      if (deps.passkeyLogin.method() === undefined) {
        throw new HubError('not_found', text`This hub has no logins by passkey.`);
      }
      return passkeys.ask('login', { browser: form.get('_csrf') ?? '' });
    },

    async 'second-factor'(ctx) {
      const browser = deps.logIn.keyOf(ctx);
      const pending = await deps.partialLogins.find(browser, 'second-factor');
      if (pending === undefined) throw tooLate();
      return passkeys.ask('second-factor', { user: pending.user, browser });
    },

    async 'set-up'(ctx) {
      const browser = deps.logIn.keyOf(ctx);
      const pending = await deps.partialLogins.find(browser, 'set-up');
      if (pending === undefined) throw tooLate();
      return passkeys.askForNew(pending.user, browser);
    },

    async confirm(ctx) {
      const { user, session } = requireLogin(ctx);
      return passkeys.ask('confirm', { user, browser: session.sessionId });
    },

    async add(ctx) {
      const { user, session } = requireLogin(ctx);
      await requirePassword(deps.credentials, user);
      return passkeys.askForNew(user, session.sessionId);
    },
  };

  router.post('/passkey-question', async (ctx) => {
    const form = await pages.readForm(ctx);
    const purpose = form.get('purpose') ?? '';
    if (!Object.hasOwn(questions, purpose)) {
      throw new HubError('bad_request', text`There are no passkeys for this purpose.`);
    }
    ctx.body = await questions[purpose as PasskeyFormPurpose](ctx, form);
  });
}

function requireLogin(ctx: Context) {
  const login = loginOf(ctx);
  if (login === undefined) throw tooLate();
  return login;
}

function tooLate(): HubError {
  return new HubError('forbidden', text`You are no longer logged in.`, {
    hint: text`Log in again.`,
  });
}
