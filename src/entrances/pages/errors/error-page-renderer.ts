import type { Context } from 'koa';
import type { CsrfProtection } from '../../../identity/sessions/csrf.ts';
import { loginOf } from '../../../identity/sessions/session-middleware.ts';
import type { ErrorResponse } from '../../../platform/http/answer.ts';
import type { RenderErrorPage } from '../../../platform/http/error-answers.ts';
import type { Languages } from '../../../platform/texts/languages.ts';
import { text } from '../../../platform/texts/text.ts';
import type { Announced } from '../announced.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, renderHtml } from '../html.ts';
import type { PageContext } from '../page-context.ts';
import { languageOf, readPreferences } from '../preferences.ts';
import { errorPage } from './error-page.ts';

/** Renders error pages without knowing who asks: for every place that must answer a failure. */
export function createErrorPageRenderer(
  layout: Omit<LayoutProps, 'now'>,
  languages: Languages,
  announced: Announced['shown'],
): RenderErrorPage {
  return (error, { id: requestId, headers }) => {
    const { theme } = readPreferences(headers.cookie);
    const page = pageOf(
      { ...layout, now: new Date(), theme, requestId, announcements: announced() },
      error,
    );
    return renderHtml(page, languageOf(languages, headers));
  };
}

/**
 * Renders error pages with the navigation of the user who is logged in; undefined for everyone else, and for what a
 * script asks: the page has the user's name and a token for forms, and the script may be a neighbour's on this origin.
 */
export function createUserErrorPages(
  pages: Pick<PageContext, 'layoutFor' | 'languageOf'>,
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
    const layout = { ...(await pages.layoutFor(ctx)), notice: undefined };
    return renderHtml(pageOf(layout, error), pages.languageOf(ctx));
  };
}

const unforeseen = {
  message: text`Something went wrong inside the hub.`,
  hint: text`Try again; if it happens again, tell your administrator the id of this error.`,
};

function pageOf(layout: LayoutProps, error: ErrorResponse): Html {
  const { status, shown = unforeseen, retryAfterSeconds, errorId } = error;
  const { message, hint } = shown;
  return errorPage({ layout, status, message, hint, retryAfterSeconds, errorId });
}
