import type Router from '@koa/router';
import type { Context } from 'koa';
import type { PartialLogin } from '../../../identity/accounts/partial-logins.ts';
import { type Passkeys, passkeyAnswerOf } from '../../../identity/accounts/passkeys.ts';
import type { SecondFactors } from '../../../identity/accounts/second-factors.ts';
import type { AccountPasswords } from '../../../identity/authentication/account-passwords.ts';
import type { PasswordCredentialStore } from '../../../identity/users/password-credential-store.ts';
import type { User } from '../../../identity/users/user-store.ts';
import type { ClientAddress } from '../../../platform/http/request-address.ts';
import type { Metrics } from '../../../platform/metrics/metrics.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PasswordHasher } from '../../../plugin/host/authenticator.ts';
import type { PageContext } from '../page-context.ts';
import { choosePasswordPage } from './choose-password-page.ts';
import type { LogIn } from './log-in.ts';
import {
  endsApiTokens,
  type NewPasswordProblems,
  newPasswordProblems,
} from './new-password-fields.ts';
import { type FactorsOffered, secondFactorPage } from './second-factor-page.ts';

/** `/hub/login/second-factor` and `/hub/login/password`: the steps of a login after the password. */
export function loginStepRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly logIn: LogIn;
    readonly secondFactors: Pick<SecondFactors, 'find' | 'check'>;
    readonly passkeys: Pick<Passkeys, 'unusable' | 'check'>;
    readonly passwords: AccountPasswords;
    readonly passwordHasher: PasswordHasher;
    readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
    readonly metrics: Metrics;
  },
): void {
  const { pages, logIn, secondFactors, passkeys, passwords, metrics } = deps;

  async function showPasswordStep(
    ctx: Context,
    { login, user }: { login: PartialLogin; user: User },
    failure?: { readonly form: URLSearchParams; readonly problems: NewPasswordProblems },
  ): Promise<void> {
    const page = choosePasswordPage({
      layout: await pages.formLayoutFor(ctx),
      purpose: { kind: 'required', userName: user.name, next: login.next },
      rules: { minimumLength: passwords.minimumLength },
      tokens: {
        count: await passwords.apiTokenCount(user.id),
        isChosen: endsApiTokens(failure?.form),
      },
      problems: failure?.problems,
    });
    pages.send(ctx, page, failure === undefined ? 200 : 400);
  }

  async function offeredTo({ id }: User): Promise<FactorsOffered> {
    const factors = await secondFactors.find(id);
    const passkey = passkeys.unusable === undefined && (factors?.passkeyCount ?? 0) > 0;
    // Where an administrator has just removed all of them, the login goes on with the next attempt at it.
    return {
      code: factors?.hasApp ?? false,
      passkey,
      recoveryCode: (factors?.recoveryCodesLeft ?? 0) > 0,
    };
  }

  router.get('/login/second-factor', async (ctx) => {
    const pending = await logIn.pendingAt(ctx, 'second-factor');
    if (pending === undefined) return logIn.startAgain(ctx);
    const { next } = pending.login;
    const isRecovery = ctx.query['with'] === 'recovery-code';
    const offers = await offeredTo(pending.user);
    const layout = await pages.formLayoutFor(ctx);
    pages.send(ctx, secondFactorPage({ layout, next, isRecovery, offers }));
  });

  router.post('/login/second-factor', async (ctx) => {
    const form = await pages.readForm(ctx);
    const pending = await logIn.pendingAt(ctx, 'second-factor');
    if (pending === undefined) return logIn.startAgain(ctx);
    const { login, user } = pending;
    const { address } = ctx.state['client'] as ClientAddress;
    const answer = passkeyAnswerOf(form, logIn.keyOf(ctx));
    const hasPasskey = answer.response !== '';
    const result = hasPasskey
      ? await passkeys.check('second-factor', { ...answer, user, address })
      : await secondFactors.check({ user, address, code: form.get('code') ?? '' });
    if (result.outcome === 'right') return logIn.completeStep(ctx);
    const isDelayed = result.outcome === 'delayed';
    metrics.countLogin(login.authenticator, isDelayed ? 'throttled' : 'refused');
    if (isDelayed) ctx.set('Retry-After', String(result.retryAfterSeconds));
    const page = secondFactorPage({
      layout: await pages.formLayoutFor(ctx),
      next: login.next,
      isRecovery: form.get('with') === 'recovery-code',
      offers: await offeredTo(user),
      ...(isDelayed
        ? { waitSeconds: result.retryAfterSeconds }
        : {
            error: hasPasskey
              ? text`This passkey was not accepted. Try again.`
              : text`This code is wrong, or it has been used already.`,
          }),
    });
    pages.send(ctx, page, isDelayed ? 429 : 401);
  });

  router.get('/login/password', async (ctx) => {
    const pending = await logIn.pendingAt(ctx, 'new-password');
    return pending === undefined ? logIn.startAgain(ctx) : showPasswordStep(ctx, pending);
  });

  router.post('/login/password', async (ctx) => {
    const form = await pages.readForm(ctx);
    const pending = await logIn.pendingAt(ctx, 'new-password');
    if (pending === undefined) return logIn.startAgain(ctx);
    const { user } = pending;
    const password = form.get('new_password') ?? '';
    const problems = newPasswordProblems(form, passwords.problemWith(password, user.name));
    if (problems !== undefined) return showPasswordStep(ctx, pending, { form, problems });
    const credential = await deps.credentials.findPasswordHash(user.name);
    const { verify } = deps.passwordHasher;
    if ((await verify(password, credential?.passwordHash)).matches) {
      const problem = text`This is the password you have now. Choose another one.`;
      return showPasswordStep(ctx, pending, { form, problems: { password: problem } });
    }
    await passwords.set(user, password, { endsApiTokens: endsApiTokens(form) });
    return logIn.completeStep(ctx);
  });
}
