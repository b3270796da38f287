import type Router from '@koa/router';
import type { Context } from 'koa';
import type { PartialLogin, PartialLogins } from '../../accounts/partial-logins.ts';
import type { SecondFactors } from '../../accounts/second-factors.ts';
import type { AccountPasswords } from '../../authentication/account-passwords.ts';
import type { LoggedIn } from '../../authentication/login-service.ts';
import type { Sealer } from '../../crypto/sealer.ts';
import type { ClientAddress } from '../../http/client-address.ts';
import { openOnlyCookie } from '../../http/sealed-cookies.ts';
import { setCookie } from '../../http/set-cookie.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { PasswordHasher } from '../../plugin-host/authenticator.ts';
import type { PasswordCredentialStore } from '../../users/password-credential-store.ts';
import type { User, UserStore } from '../../users/user-store.ts';
import type { PageContext } from '../page-context.ts';
import { choosePasswordPage } from './choose-password-page.ts';
import type { NewPasswordProblems } from './new-password-fields.ts';
import { secondFactorPage } from './second-factor-page.ts';

/** What stands between a password that was right and a login. */
export interface LoginSteps {
  /**
   * Goes on with a login: true when it answered with the next step, false when nothing is missing.
   * The second factor comes first: only who has it may choose a password.
   */
  continueLogin(ctx: Context, result: LoggedIn, next: string | undefined): Promise<boolean>;
  /** Forgets a login that stopped halfway in this browser. */
  abandon(ctx: Context): Promise<void>;
  /** Adds `/login/second-factor` and `/login/password`. */
  addRoutes(router: Router): void;
}

const cookieName = 'hub-login-step';
const cookieSeconds = 300;

/** Creates the steps of a login by password. */
export function createLoginSteps(deps: {
  readonly pages: PageContext;
  readonly secondFactors: SecondFactors;
  readonly partialLogins: PartialLogins;
  readonly sealer: Sealer;
  readonly passwords: AccountPasswords;
  readonly passwordHasher: PasswordHasher;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly users: Pick<UserStore, 'findById'>;
  /** The authenticator whose accounts have their password, and so their second factor, here. */
  readonly passwordAuthenticator: () => string | undefined;
  readonly minimumPasswordLength: number;
  readonly beginSession: (ctx: Context, result: LoggedIn) => Promise<void>;
  readonly metrics: Metrics;
  readonly defaultUrl: string;
  readonly isSecure: boolean;
}): LoginSteps {
  const { pages, secondFactors, partialLogins, sealer, passwords, metrics } = deps;
  const { urls } = pages;

  function setKey(ctx: Context, key: string | undefined): void {
    setCookie(ctx, cookieName, key === undefined ? '' : sealer.seal(key, cookieName), {
      path: urls.hub,
      secure: deps.isSecure,
      sameSite: 'Strict',
      maxAgeSeconds: key === undefined ? 0 : cookieSeconds,
    });
  }

  const keyOf = (ctx: Context): string =>
    openOnlyCookie(sealer, ctx.req.headers.cookie, cookieName) ?? '';

  async function pendingOf(
    ctx: Context,
    step: PartialLogin['step'],
  ): Promise<{ login: PartialLogin; user: User } | undefined> {
    const login = await partialLogins.find(keyOf(ctx));
    const user = login?.step === step ? await deps.users.findById(login.userId) : undefined;
    return login === undefined || user === undefined ? undefined : { login, user };
  }

  async function begin(ctx: Context, login: Omit<PartialLogin, 'expiresAt'>): Promise<void> {
    setKey(ctx, await partialLogins.begin(login));
    ctx.redirect(login.step === 'second-factor' ? urls.loginSecondFactor : urls.loginPassword);
    ctx.status = 303;
  }

  /** Ends a step: the login is taken away, so that of two answers to it one goes on. */
  async function passStep(ctx: Context, user: User): Promise<void> {
    const login = await partialLogins.take(keyOf(ctx));
    if (login === undefined) return startAgain(ctx);
    if (login.step === 'second-factor' && login.mustChangePassword) {
      return begin(ctx, { ...login, step: 'new-password' });
    }
    setKey(ctx, undefined);
    const { authenticator, identityId } = login;
    await deps.beginSession(ctx, {
      outcome: 'logged_in',
      user,
      identityId,
      authenticator,
      mustChangePassword: false,
    });
    metrics.countLogin(authenticator, 'logged_in');
    ctx.redirect(login.next ?? deps.defaultUrl);
    ctx.status = 303;
  }

  function startAgain(ctx: Context): void {
    setKey(ctx, undefined);
    ctx.redirect(urls.login);
    ctx.status = 303;
  }

  async function showPasswordStep(
    ctx: Context,
    { login, user }: { login: PartialLogin; user: User },
    problems?: NewPasswordProblems,
  ): Promise<void> {
    const page = choosePasswordPage({
      layout: await pages.formLayoutFor(ctx),
      purpose: { kind: 'required', userName: user.name, next: login.next },
      rules: { minimumLength: deps.minimumPasswordLength },
      problems,
    });
    pages.send(ctx, page, problems === undefined ? 200 : 400);
  }

  return {
    async continueLogin(ctx, { user, authenticator, identityId, mustChangePassword }, next) {
      if (authenticator !== deps.passwordAuthenticator()) return false;
      const hasFactor = (await secondFactors.find(user.id)) !== undefined;
      if (!hasFactor && !mustChangePassword) return false;
      await begin(ctx, {
        userId: user.id,
        authenticator,
        identityId,
        step: hasFactor ? 'second-factor' : 'new-password',
        mustChangePassword,
        ...(next === undefined ? {} : { next }),
      });
      return true;
    },

    async abandon(ctx) {
      const key = keyOf(ctx);
      if (key === '') return;
      await partialLogins.take(key);
      setKey(ctx, undefined);
    },

    addRoutes(router) {
      router.get('/login/second-factor', async (ctx) => {
        const pending = await pendingOf(ctx, 'second-factor');
        if (pending === undefined) return startAgain(ctx);
        const { next } = pending.login;
        const isRecovery = ctx.query['with'] === 'recovery-code';
        pages.send(
          ctx,
          secondFactorPage({ layout: await pages.formLayoutFor(ctx), next, isRecovery }),
        );
      });

      router.post('/login/second-factor', async (ctx) => {
        const form = await pages.readForm(ctx);
        const pending = await pendingOf(ctx, 'second-factor');
        if (pending === undefined) return startAgain(ctx);
        const { login, user } = pending;
        const { address } = ctx.state['client'] as ClientAddress;
        const code = form.get('code') ?? '';
        const result = await secondFactors.check({ user, address, code });
        if (result.outcome === 'right') return passStep(ctx, user);
        const isDelayed = result.outcome === 'delayed';
        metrics.countLogin(login.authenticator, isDelayed ? 'throttled' : 'refused');
        if (isDelayed) ctx.set('Retry-After', String(result.retryAfterSeconds));
        const page = secondFactorPage({
          layout: await pages.formLayoutFor(ctx),
          next: login.next,
          isRecovery: form.get('with') === 'recovery-code',
          ...(isDelayed
            ? { waitSeconds: result.retryAfterSeconds }
            : { error: 'This code is wrong, or it has been used already.' }),
        });
        pages.send(ctx, page, isDelayed ? 429 : 401);
      });

      router.get('/login/password', async (ctx) => {
        const pending = await pendingOf(ctx, 'new-password');
        return pending === undefined ? startAgain(ctx) : showPasswordStep(ctx, pending);
      });

      router.post('/login/password', async (ctx) => {
        const form = await pages.readForm(ctx);
        const pending = await pendingOf(ctx, 'new-password');
        if (pending === undefined) return startAgain(ctx);
        const { user } = pending;
        const password = form.get('new_password') ?? '';
        const problems = newPasswordProblems(form, passwords.problemWith(password, user.name));
        if (problems !== undefined) return showPasswordStep(ctx, pending, problems);
        const credential = await deps.credentials.findPasswordHash(user.name);
        const { verify } = deps.passwordHasher;
        if ((await verify(password, credential?.passwordHash)).matches) {
          const problem = 'This is the password you have now. Choose another one.';
          return showPasswordStep(ctx, pending, { password: problem });
        }
        await passwords.set(user, password);
        return passStep(ctx, user);
      });
    },
  };
}

/** What is wrong with the two fields of a new password; undefined when nothing is. */
export function newPasswordProblems(
  form: URLSearchParams,
  problem: string | undefined,
): NewPasswordProblems | undefined {
  if (problem !== undefined) return { password: problem };
  if (form.get('new_password') === form.get('repeat_password')) return undefined;
  return { repeated: 'The two passwords are not the same.' };
}
