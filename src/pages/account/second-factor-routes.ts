import type Router from '@koa/router';
import type { Context } from 'koa';
import type { CodeResult, SecondFactors, SetUp } from '../../accounts/second-factors.ts';
import { HubError } from '../../errors.ts';
import type { ClientAddress } from '../../http/client-address.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import { type Phrase, text } from '../../texts/text.ts';
import type { PasswordCredentialStore } from '../../users/password-credential-store.ts';
import type { User } from '../../users/user-store.ts';
import { qrModulesOf } from '../elements/qr-code.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import {
  confirmWithCodePage,
  recoveryCodesPage,
  secondFactorSetUpPage,
} from './second-factor-pages.ts';

/** `/hub/account/second-factor`: turning it on and off, and new recovery codes. */
export function secondFactorRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly confirmLogin: ConfirmLogin;
    readonly secondFactors: SecondFactors;
    readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  },
): void {
  const { pages, confirmLogin, secondFactors } = deps;
  const { urls } = pages;

  async function showSetUp(ctx: Context, { secret, uri }: SetUp, failure?: Failure): Promise<void> {
    const page = secondFactorSetUpPage({
      layout: await pages.formLayoutFor(ctx),
      qr: await qrModulesOf(uri),
      secret,
      problem: failure?.problem,
    });
    pages.send(ctx, page, failure?.status ?? 200);
  }

  const hasApp = async ({ user }: Login) => (await secondFactors.find(user.id))?.hasApp ?? false;

  function attemptOf(ctx: Context, { user }: Login, form: URLSearchParams) {
    const { address } = ctx.state['client'] as ClientAddress;
    return { user, address, code: form.get('code') ?? '' };
  }

  router.get(
    '/account/second-factor',
    confirmLogin.page(async (ctx, login) => {
      await requirePassword(deps.credentials, login.user);
      await showSetUp(ctx, await secondFactors.begin(login.user));
    }),
  );

  router.post(
    '/account/second-factor',
    confirmLogin.change(async (ctx, login, form) => {
      await requirePassword(deps.credentials, login.user);
      const result = await secondFactors.confirm(attemptOf(ctx, login, form));
      if (result.outcome === 'on') {
        const { recoveryCodes: codes } = result;
        if (codes === undefined) {
          return pages.redirectWithNotice(ctx, urls.account, {
            kind: 'good',
            text: text`Your authenticator app is on.`,
          });
        }
        const layout = await pages.layoutFor(ctx);
        return pages.send(ctx, recoveryCodesPage({ layout, codes, after: 'app' }));
      }
      if (await hasApp(login)) {
        ctx.redirect(urls.account);
        return;
      }
      await showSetUp(ctx, await secondFactors.resume(login.user), codeFailure(ctx, result));
    }),
  );

  codeProtected({
    path: '/account/second-factor/remove',
    title: text`Turn off the authenticator app?`,
    lead: text`Without a passkey, your recovery codes go with it, and your password alone logs you in from then on.`,
    label: text`Turn off`,
    action: urls.removeSecondFactor,
    isDestructive: true,
    isForPasskeys: false,
    async run(ctx, { user }) {
      await secondFactors.removeCodes(user);
      pages.redirectWithNotice(ctx, urls.account, {
        kind: 'good',
        text: text`Your authenticator app is off.`,
      });
    },
  });

  codeProtected({
    path: '/account/second-factor/recovery-codes',
    title: text`Make new recovery codes?`,
    lead: text`Those you have stop working.`,
    label: text`Make new codes`,
    action: urls.recoveryCodes,
    isDestructive: false,
    isForPasskeys: true,
    async run(ctx, { user }) {
      const codes = await secondFactors.renewRecoveryCodes(user.id);
      pages.send(
        ctx,
        recoveryCodesPage({ layout: await pages.layoutFor(ctx), codes, after: 'renewal' }),
      );
    },
  });

  /**
   * An action that a stolen browser session must not suffice for: it needs a code, or a recent login where passkeys are
   * all that there is.
   */
  function codeProtected(action: {
    readonly path: string;
    readonly title: Phrase;
    readonly lead: Phrase;
    readonly label: Phrase;
    readonly action: string;
    readonly isDestructive: boolean;
    /** Whether it is for users without an app too. */
    readonly isForPasskeys: boolean;
    readonly run: (ctx: Context, login: Login) => Promise<void>;
  }): void {
    async function show(ctx: Context, asksForCode: boolean, failure?: Failure) {
      const layout = await pages.formLayoutFor(ctx);
      const { problem } = failure ?? {};
      const page = confirmWithCodePage({ ...action, layout, asksForCode, problem });
      pages.send(ctx, page, failure?.status ?? 200);
    }

    router.get(
      action.path,
      pages.loggedIn(async (ctx, login) => {
        const factors = await secondFactors.find(login.user.id);
        if (factors?.hasApp || (factors !== undefined && action.isForPasskeys)) {
          return show(ctx, factors.hasApp);
        }
        ctx.redirect(urls.account);
      }),
    );

    router.post(
      action.path,
      pages.loggedIn(async (ctx, login) => {
        if (action.isForPasskeys && !(await hasApp(login))) {
          const form = await confirmLogin.readForm(ctx, login);
          if (form !== undefined) await action.run(ctx, login);
          return;
        }
        const form = await pages.readForm(ctx);
        const result = await secondFactors.check(attemptOf(ctx, login, form));
        if (result.outcome === 'right') await action.run(ctx, login);
        else await show(ctx, true, codeFailure(ctx, result));
      }),
    );
  }
}

/** Logins by other means ask for no factor here: their provider has factors of its own. */
export async function requirePassword(
  credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>,
  user: Pick<User, 'name'>,
): Promise<void> {
  if ((await credentials.findPasswordHash(user.name)) !== undefined) return;
  throw new HubError(
    'not_found',
    text`A second factor goes with a password, and you have none here.`,
  );
}

/** What a page says of a code that was refused. */
export interface Failure {
  readonly problem: Phrase;
  readonly status: number;
}

export function codeFailure(
  ctx: Context,
  result: Exclude<CodeResult, { outcome: 'right' }>,
): Failure {
  if (result.outcome === 'wrong') {
    return { problem: text`This code is wrong, or it has been used already.`, status: 400 };
  }
  ctx.set('Retry-After', String(result.retryAfterSeconds));
  return { problem: text`Too many wrong codes. Wait a while, then try again.`, status: 429 };
}
