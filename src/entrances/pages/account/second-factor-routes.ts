import type { Context } from 'koa';
import { text } from '../../../platform/texts/text.ts';
import { qrModulesOf } from '../elements/qr-code.ts';
import type { BoundPages } from '../forms/binding.ts';
import type { Html } from '../html.ts';
import {
  confirmWithCodePage,
  type RecoveryCodesView,
  recoveryCodesPage,
  secondFactorSetUpPage,
} from './second-factor-pages.ts';

/** `/hub/account/second-factor`: turning it on and off, and new recovery codes. */
export function secondFactorRoutes({ page, form, pages }: BoundPages): void {
  const { urls } = pages;
  const codeIn = (sent: URLSearchParams) => ({ code: sent.get('code') ?? '' });
  const stateIn = (sent: URLSearchParams) => ({ state: sent.get('state') ?? '' });

  const showCodes = async (
    ctx: Context,
    codes: readonly string[] = [],
    after: RecoveryCodesView['after'],
  ): Promise<Html> => recoveryCodesPage({ layout: await pages.layoutFor(ctx), codes, after });

  const showSetUp = page(
    '/account/second-factor',
    'viewOwnAppSetUp',
    async ({ layout, model, failure }) => {
      if (model === undefined) return { redirect: urls.account };
      const { uri, ...setUp } = model;
      const qr = await qrModulesOf(uri);
      return secondFactorSetUpPage({ layout, qr, ...setUp, problem: failure?.problem });
    },
    { againQuery: stateIn },
  );

  form('/account/second-factor', 'turnOnOwnApp', {
    body: (sent) => ({ ...codeIn(sent), ...stateIn(sent) }),
    done: ({ ctx, result: { recovery_codes: codes } }) =>
      codes === undefined
        ? { to: urls.account, say: text`Your authenticator app is on.` }
        : showCodes(ctx, codes, 'app'),
    again: showSetUp,
  });

  const showRemoval = page(
    '/account/second-factor/remove',
    'viewOwnFactors',
    ({ layout, model, failure }) =>
      model?.hasApp
        ? confirmWithCodePage({
            layout,
            title: text`Turn off the authenticator app?`,
            lead: text`Without a passkey, your recovery codes go with it, and your password alone logs you in from then on.`,
            label: text`Turn off`,
            action: urls.removeSecondFactor,
            isDestructive: true,
            asksForCode: true,
            problem: failure?.problem,
          })
        : { redirect: urls.account },
  );

  form('/account/second-factor/remove', 'turnOffOwnApp', {
    body: codeIn,
    done: () => ({ to: urls.account, say: text`Your authenticator app is off.` }),
    again: showRemoval,
  });

  const showRenewal = page(
    '/account/second-factor/recovery-codes',
    'viewOwnFactors',
    ({ layout, model, failure }) =>
      model === undefined
        ? { redirect: urls.account }
        : confirmWithCodePage({
            layout,
            title: text`Make new recovery codes?`,
            lead: text`Those you have stop working.`,
            label: text`Make new codes`,
            action: model.hasApp ? urls.recoveryCodesByCode : urls.recoveryCodes,
            isDestructive: false,
            asksForCode: model.hasApp,
            problem: failure?.problem,
          }),
  );

  form('/account/second-factor/recovery-codes', 'renewOwnRecoveryCodes', {
    done: ({ ctx, result }) => showCodes(ctx, result.recovery_codes, 'renewal'),
    again: showRenewal,
  });

  form('/account/second-factor/recovery-codes/by-code', 'renewOwnRecoveryCodesByCode', {
    body: codeIn,
    done: ({ ctx, result }) => showCodes(ctx, result.recovery_codes, 'renewal'),
    again: showRenewal,
  });
}
