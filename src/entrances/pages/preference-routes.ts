import type Router from '@koa/router';
import { setCookie } from '../../platform/http/cookies.ts';
import { preferencesCookie } from '../../platform/protocol/cookie-names.ts';
import type { PageContext } from './page-context.ts';
import { changePreferences, preferencesValue, readPreferences } from './preferences.ts';

const cookieSeconds = 365 * 86_400;

/** `POST /hub/preferences`: remembers the theme and the language in the browser, and goes back to where it was. */
export function preferenceRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly basePath: string;
    readonly publicUrl: URL;
  },
): void {
  const { pages, basePath, publicUrl } = deps;

  router.post('/preferences', async (ctx) => {
    const form = await pages.readForm(ctx);
    const value = preferencesValue(
      changePreferences(readPreferences(ctx.req.headers.cookie), form),
    );
    // For the pages outside /hub/ too, which the gateway draws; it shows the cookie to no upstream.
    setCookie(ctx, preferencesCookie, value, {
      path: basePath,
      secure: publicUrl.protocol === 'https:',
      maxAgeSeconds: value === '' ? 0 : cookieSeconds,
    });
    ctx.redirect(pages.ownPathOf(form.get('return_to') ?? '') ?? pages.urls.home);
    ctx.status = 303;
  });
}
