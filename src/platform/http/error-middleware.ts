import type { Context, Middleware } from 'koa';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';
import { isNavigation, prefersHtml } from './content-negotiation.ts';
import type { ErrorAnswers } from './error-answers.ts';
import { type ErrorResponse, toErrorResponse } from './error-response.ts';
import { keepsOpener } from './security-headers.ts';

/** Headers that speak of a body which is not sent after all. */
const bodyHeaders = [
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-type',
  'etag',
  'last-modified',
  'location',
];

/**
 * Answers whatever a later middleware throws, and never throws itself. It must be outermost: Koa's own
 * error handler would drop every header already set and answer with plain text.
 */
export function errorMiddleware(options: {
  readonly apiPath: string;
  readonly answers: ErrorAnswers;
  /** The page of an error for who sent the request; undefined leaves the one that knows nobody. */
  readonly renderPage?: (ctx: Context, error: ErrorResponse) => Promise<string | undefined>;
}): Middleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined && !ctx.headerSent) {
        throw new HubError('not_found', text`There is nothing at this address.`);
      }
    } catch (thrown) {
      if (!ctx.headerSent) for (const name of bodyHeaders) ctx.remove(name);
      // The answer is written here; Koa has nothing to add.
      ctx.respond = false;
      const isApi = ctx.path.startsWith(options.apiPath) && !isPage(ctx);
      const page = isApi ? undefined : await pageOf(ctx, thrown);
      options.answers.respond(ctx.req, ctx.res, thrown, {
        keepsOpener: keepsOpener(ctx),
        ...(isApi && { wantsPage: false }),
        ...(page !== undefined && { page: () => page }),
      });
    }
  };

  async function pageOf(ctx: Context, thrown: unknown): Promise<string | undefined> {
    if (ctx.headerSent || !prefersHtml(ctx.req.headers)) return undefined;
    const error = toErrorResponse(thrown);
    // What the hub itself failed at may be what the page needs.
    if (error.status >= 500) return undefined;
    return options.renderPage?.(ctx, error).catch(() => undefined);
  }

  /** The authorization endpoint stands under the API path but is a page that users see. */
  function isPage(ctx: Context): boolean {
    return (
      ctx.path === `${options.apiPath}oauth2/authorize` &&
      (isNavigation(ctx.method, ctx.req.headers) || prefersHtml(ctx.req.headers))
    );
  }
}
