import type { Context } from 'koa';
import { allowFormTargets } from '../../http/security-headers.ts';
import type { ConsentView } from '../../oauth/endpoints/consent-view.ts';
import type { PageContext } from '../page-context.ts';
import { consentPage } from './consent-page.ts';

/** Answers an authorization request with the page that asks for consent. */
export async function showConsent(
  ctx: Context,
  consent: ConsentView,
  pages: PageContext,
): Promise<void> {
  const layout = await pages.formLayoutFor(ctx);
  allowFormTargets(ctx, [consent.redirectOrigin]);
  const userName = layout.user?.name ?? '';
  pages.send(ctx, consentPage({ layout, userName, consent, action: ctx.originalUrl }));
}
