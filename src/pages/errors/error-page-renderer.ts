import type { Context } from 'koa';
import type { RenderErrorPage } from '../../http/error-answers.ts';
import type { ErrorResponse } from '../../http/error-response.ts';
import type { CsrfProtection } from '../../sessions/csrf.ts';
import { loginOf } from '../../sessions/session-middleware.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { renderHtml } from '../html.ts';
import type { PageContext } from '../page-context.ts';
import { readPreferences } from '../preferences.ts';
import { errorPage } from './error-page.ts';

/** Renders error pages without knowing who asks: for every place that must answer a failure. */
export function createErrorPageRenderer(layout: Omit<LayoutProps, 'now'>): RenderErrorPage {
  return (error, { id: requestId, headers }) => {
    const { theme } = readPreferences(headers.cookie);
    return render({ ...layout, now: new Date(), theme, requestId }, error);
  };
}

/**
 * Renders error pages with the navigation of the user who is logged in; undefined for everyone else, and for what a
 * script asks: the page has the user's name and a token for forms, and the script may be a neighbour's on this origin.
 */
export function createUserErrorPages(
  pages: Pick<PageContext, 'layoutFor'>,
  csrf: Pick<CsrfProtection, 'requireDocument'>,
): (ctx: Context, error: ErrorResponse) => Promise<string | undefined> {
  return async (ctx, error) => {
    if (loginOf(ctx) === undefined) return undefined;
    try {
      csrf.requireDocument(ctx);
    } catch {
      return undefined;
    }
    // The session is stored by now: a notice would not be taken from it, and be shown again.
    return render({ ...(await pages.layoutFor(ctx)), notice: undefined }, error);
  };
}

function render(layout: LayoutProps, error: ErrorResponse): string {
  const { status, message, hint, retryAfterSeconds, errorId } = error;
  return renderHtml(errorPage({ layout, status, message, hint, retryAfterSeconds, errorId }));
}
