import type { Context, Middleware } from 'koa';
import { isForWindow } from '../../../platform/http/content-negotiation.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import type { PageUrls } from '../page-urls.ts';
import { type InterstitialView, interstitialPage } from './interstitial-page.ts';

/** Goes on to an address from the answer of a form, which may not redirect there itself. */
export function interstitialRedirect(
  ctx: Context,
  pages: Pick<PageContext, 'send'>,
  view: InterstitialView,
): void {
  pages.send(ctx, interstitialPage(view));
  ctx.set('Refresh', `0;url=${view.url}`);
}

/**
 * For routes of forms: leads browsers on, whatever they redirect to. Chromium applies `form-action` to every
 * redirect that follows a form, those of other sites included: an OAuth client on another origin, or wherever that
 * sends its users, would not be reached. So there is a redirect to pages of the hub only that do not lead on
 * themselves; to anything else a page goes on by itself. Programs are redirected as ever.
 */
export function formRedirects(pages: PageContext, publicUrl: URL): Middleware {
  return async (ctx, next) => {
    await next();
    if (ctx.status !== 302 && ctx.status !== 303) return;
    const location = ctx.response.get('Location');
    const target = URL.parse(location, publicUrl.href);
    if (target === null) return;
    if (target.origin === publicUrl.origin && isLast(pages.urls, target.pathname)) return;
    if (isForWindow(ctx.req.headers)) await leadOn(ctx, pages, location);
  };
}

/** Redirects a browser that may have sent a form before, in a way that lets it arrive anywhere. */
export async function leadOn(ctx: Context, pages: PageContext, url: string): Promise<void> {
  if (!isForWindow(ctx.req.headers)) return ctx.redirect(url);
  ctx.remove('Location');
  const layout = await pages.layoutFor(ctx);
  const target = URL.parse(pages.urlOf(url));
  const provider = target === null ? layout.hubTitle : target.host || target.protocol;
  interstitialRedirect(ctx, pages, {
    layout,
    title: text`Continue to ${provider}`,
    provider,
    message: text`If nothing happens, press the button.`,
    url: pages.urlOf(url),
  });
}

/** Pages of the hub that redirect to elsewhere, by how they are asked or whom they know. */
const leadingPages = ['', 'api', 'confirm-login', 'open-server', 'user', 'user-redirect'];

/** Whether a path is of a page of the hub at which a browser stays. */
function isLast({ hub, login, loginWith }: PageUrls, path: string): boolean {
  if (!path.startsWith(hub) || path === login || path.startsWith(loginWith(''))) return false;
  const [page = ''] = path.slice(hub.length).split('/', 1);
  return !leadingPages.includes(page);
}
