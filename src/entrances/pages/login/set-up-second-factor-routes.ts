import type Router from '@koa/router';
import type { Context } from 'koa';
import { type Passkeys, passkeyAnswerOf } from '../../../identity/accounts/passkeys.ts';
import {
  codeProblem,
  type SecondFactors,
  type SetUp,
} from '../../../identity/accounts/second-factors.ts';
import type { User } from '../../../identity/users/user-store.ts';
import type { HubError } from '../../../platform/errors.ts';
import type { ClientAddress } from '../../../platform/http/request-address.ts';
import { phraseIn } from '../../../platform/texts/text.ts';
import { recoveryCodesPage } from '../account/second-factor-pages.ts';
import { deviceName } from '../elements/device.ts';
import { qrModulesOf } from '../elements/qr-code.ts';
import type { PageContext } from '../page-context.ts';
import type { LogIn } from './log-in.ts';
import { setUpSecondFactorPage } from './set-up-second-factor-page.ts';

/** `/hub/login/set-up-second-factor`: a login goes no further without one, where it is compulsory. */
export function setUpSecondFactorRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly logIn: LogIn;
    readonly secondFactors: Pick<SecondFactors, 'find' | 'setUp' | 'confirm'>;
    readonly passkeys: Pick<Passkeys, 'unusable' | 'add'>;
  },
): void {
  const { pages, logIn, secondFactors, passkeys } = deps;

  /**
   * Whose login stands at this step. One that has a second factor by now, set up elsewhere, begins again: the
   * password alone, which may be known to others, adds no further one.
   */
  async function waitingUser(ctx: Context): Promise<User | undefined> {
    const pending = await logIn.pendingAt(ctx, 'set-up');
    if (pending === undefined) return undefined;
    return (await secondFactors.find(pending.user.id)) === undefined ? pending.user : undefined;
  }

  async function show(ctx: Context, { uri, ...setUp }: SetUp, failure?: HubError): Promise<void> {
    const { retryAfterSeconds } = failure ?? {};
    const page = setUpSecondFactorPage({
      layout: await pages.formLayoutFor(ctx),
      qr: await qrModulesOf(uri),
      ...setUp,
      problem: failure?.shown.message,
      takesPasskeys: passkeys.unusable === undefined,
    });
    if (retryAfterSeconds !== undefined) ctx.set('Retry-After', String(retryAfterSeconds));
    pages.send(
      ctx,
      page,
      failure === undefined ? 200 : retryAfterSeconds === undefined ? 400 : 429,
    );
  }

  function complete(
    ctx: Context,
    codes: readonly string[] | undefined,
    after: 'app' | 'passkey',
  ): Promise<void> {
    if (codes === undefined) return logIn.completeStep(ctx);
    return logIn.completeStep(ctx, async (next) => {
      const layout = await pages.layoutFor(ctx);
      pages.send(ctx, recoveryCodesPage({ layout, codes, after, next }));
    });
  }

  router.get('/login/set-up-second-factor', async (ctx) => {
    const user = await waitingUser(ctx);
    if (user === undefined) return logIn.startAgain(ctx);
    // A new secret each time: a page that was seen by others must not give away the one that counts.
    await show(ctx, await secondFactors.setUp({ user, login: logIn.keyOf(ctx) }));
  });

  router.post('/login/set-up-second-factor', async (ctx) => {
    const form = await pages.readForm(ctx);
    const user = await waitingUser(ctx);
    if (user === undefined) return logIn.startAgain(ctx);
    const answer = passkeyAnswerOf(form, logIn.keyOf(ctx));
    if (answer.response !== '') {
      const device = phraseIn(deviceName(ctx.get('User-Agent')), pages.languageOf(ctx));
      return complete(ctx, await passkeys.add(user, answer, device), 'passkey');
    }
    const { address } = ctx.state['client'] as ClientAddress;
    const code = form.get('code') ?? '';
    const begun = { user, login: logIn.keyOf(ctx), state: form.get('state') ?? '' };
    const result = await secondFactors.confirm({ ...begun, address, code });
    if (result.outcome !== 'on') {
      return show(ctx, await secondFactors.setUp(begun), codeProblem(result));
    }
    await complete(ctx, result.recoveryCodes, 'app');
  });
}
