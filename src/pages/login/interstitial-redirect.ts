import type { Context } from 'koa';
import type { PageContext } from '../page-context.ts';
import { type InterstitialView, interstitialPage } from './interstitial-page.ts';

/** Goes on to another site from the answer of a form, which may not redirect there itself. */
export function interstitialRedirect(
  ctx: Context,
  pages: PageContext,
  view: InterstitialView,
): void {
  pages.send(ctx, interstitialPage(view));
  ctx.set('Refresh', `0;url=${view.url}`);
}
