import type { Context } from 'koa';
import type { PageKit } from '../page-kit.ts';
import { type LeavingView, leavingPage } from './leaving-page.ts';

/** Goes on to another site from the answer of a form, which may not redirect there itself. */
export function leave(ctx: Context, kit: PageKit, view: LeavingView): void {
  kit.send(ctx, leavingPage(view));
  ctx.set('Refresh', `0;url=${view.url}`);
}
