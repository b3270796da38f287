import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { isNavigation, prefersHtml } from './content-negotiation.ts';
import { type ErrorResponse, errorBody, toErrorResponse } from './error-response.ts';
import { setSecurityHeaders } from './security-headers.ts';

/** Renders an error page: a whole HTML document. */
export type RenderErrorPage = (error: ErrorResponse, requestId: string) => string;

/**
 * Answers whatever a later middleware throws, and never throws itself. It must be outermost: Koa's own
 * error handler would drop every header already set and answer with plain text.
 */
export function errorMiddleware(options: {
  readonly apiPath: string;
  readonly isHttps: boolean;
  readonly renderErrorPage: RenderErrorPage;
  readonly log: Logger;
}): Middleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined && !ctx.headerSent) answer404(ctx);
    } catch (thrown) {
      answer(ctx, thrown);
    }
  };

  function answer404(ctx: Context): void {
    write(ctx, {
      ...toErrorResponse(undefined),
      status: 404,
      code: 'not_found',
      message: 'There is nothing at this address.',
      hint: undefined,
      errorId: undefined,
      isBug: false,
    });
  }

  function answer(ctx: Context, thrown: unknown): void {
    const error = toErrorResponse(thrown);
    const fields = {
      requestId: ctx.state['requestId'] as string,
      errorId: error.errorId,
      code: error.code,
    };
    if (error.isBug) options.log.error({ ...fields, err: thrown }, 'a request failed unexpectedly');
    else if (error.status >= 500) options.log.warn({ ...fields, err: thrown }, error.message);
    if (ctx.headerSent || !ctx.writable) {
      ctx.res.destroy();
      return;
    }
    for (const name of ctx.res.getHeaderNames()) {
      if (name !== 'set-cookie' && name !== 'x-request-id') ctx.remove(name);
    }
    write(ctx, error);
  }

  function write(ctx: Context, error: ErrorResponse): void {
    setSecurityHeaders(ctx, options.isHttps);
    ctx.status = error.status;
    if (error.retryAfterSeconds !== undefined) {
      ctx.set('Retry-After', String(Math.ceil(error.retryAfterSeconds)));
    }
    if (error.status === 408 || error.status === 413) ctx.set('Connection', 'close');
    const isApi = ctx.path.startsWith(options.apiPath) && !isPage(ctx);
    if (isApi || !prefersHtml(ctx.req.headers)) {
      ctx.type = 'application/json';
      ctx.body = errorBody(error);
      return;
    }
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = options.renderErrorPage(error, String(ctx.state['requestId'] ?? ''));
  }

  /** The authorization endpoint stands under the API path but is a page that people see. */
  function isPage(ctx: Context): boolean {
    return (
      ctx.path === `${options.apiPath}oauth2/authorize` &&
      (isNavigation(ctx.method, ctx.req.headers) || prefersHtml(ctx.req.headers))
    );
  }
}
