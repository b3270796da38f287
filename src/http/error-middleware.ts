import type { Context, Middleware } from 'koa';
import { HubError } from '../errors.ts';
import { isNavigation, prefersHtml } from './content-negotiation.ts';
import type { ErrorAnswers } from './error-answers.ts';

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
}): Middleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined && !ctx.headerSent) {
        throw new HubError('not_found', 'There is nothing at this address.');
      }
    } catch (thrown) {
      if (!ctx.headerSent) for (const name of bodyHeaders) ctx.remove(name);
      // The answer is written here; Koa has nothing to add.
      ctx.respond = false;
      const isApi = ctx.path.startsWith(options.apiPath) && !isPage(ctx);
      options.answers.respond(ctx.req, ctx.res, thrown, isApi ? { wantsPage: false } : {});
    }
  };

  /** The authorization endpoint stands under the API path but is a page that users see. */
  function isPage(ctx: Context): boolean {
    return (
      ctx.path === `${options.apiPath}oauth2/authorize` &&
      (isNavigation(ctx.method, ctx.req.headers) || prefersHtml(ctx.req.headers))
    );
  }
}
