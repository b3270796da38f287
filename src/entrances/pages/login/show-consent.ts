import type { Context } from 'koa';
import type { ConsentView } from '../../../identity/oauth/endpoints/consent-view.ts';
import type { PageContext } from '../page-context.ts';
import { consentPage } from './consent-page.ts';

/** Answers an authorization request with the page that asks for consent. */
export async function showConsent(
  ctx: Context,
  consent: ConsentView,
  pages: PageContext,
): Promise<void> {
  const layout = await pages.formLayoutFor(ctx);
  const userName = layout.user?.name ?? '';
  pages.send(ctx, consentPage({ layout, userName, consent, action: ctx.originalUrl }));
}
