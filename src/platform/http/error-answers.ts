import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';
import {
  answerOnSocket,
  type ErrorResponse,
  errorAnswer,
  toErrorResponse,
  writeAnswer,
} from './answer.ts';
import { isNavigation, prefersHtml } from './content-negotiation.ts';
import { recordOf } from './request-log.ts';
import { keepsOpener, securityHeaderValues } from './security-headers.ts';

/** Renders an error page: a whole HTML document. */
export type RenderErrorPage = (
  error: ErrorResponse,
  request: { readonly id: string; readonly headers: IncomingHttpHeaders },
) => string;

export interface ErrorAnswerOptions {
  /** Whether a page is wanted in place of JSON; what the Accept header says when left out. */
  readonly wantsPage?: boolean;
  /** In place of the usual error page. */
  readonly page?: () => string;
  /** See keepOpener. */
  readonly keepsOpener?: boolean;
  /** Whether the failure need not be logged, as one that is logged already. */
  readonly isExpected?: boolean;
}

/** Answers everything of the hub that fails, so that clients get the same answer, and the log the same line, wherever it fails. */
export interface ErrorAnswers {
  respond(
    req: IncomingMessage,
    res: ServerResponse,
    thrown: unknown,
    options?: ErrorAnswerOptions,
  ): void;
  /** Answers a request to upgrade, for which there is no response. */
  respondOnSocket(req: IncomingMessage, socket: Duplex, thrown: unknown): void;
}

export function createErrorAnswers(deps: {
  readonly renderErrorPage: RenderErrorPage;
  readonly hstsSeconds: number | undefined;
  readonly log: Logger;
}): ErrorAnswers {
  const { renderErrorPage, log } = deps;

  /** What is not the visitor's doing is for the log. */
  function report(error: ErrorResponse, requestId: string, thrown: unknown): void {
    const { errorId, code, message, isBug, status } = error;
    if (isBug) log.error({ requestId, errorId, code, err: thrown }, 'request failed unexpectedly');
    else if (status >= 500) log.warn({ requestId, code, err: thrown }, message);
  }

  return {
    respond(
      req,
      res,
      thrown,
      { wantsPage = prefersHtml(req.headers), page, keepsOpener = false, isExpected = false } = {},
    ) {
      const { id: requestId } = recordOf(req);
      const error = toErrorResponse(thrown);
      if (!isExpected) report(error, requestId, thrown);
      const text = page ?? (() => renderErrorPage(error, { id: requestId, headers: req.headers }));
      const answer = errorAnswer(error, {
        requestId,
        headers: securityHeaderValues({ ...deps, keepsOpener }),
        ...(wantsPage && { page: text() }),
      });
      writeAnswer(req, res, answer);
    },
    respondOnSocket(req, socket, thrown) {
      const { id: requestId } = recordOf(req);
      const error = toErrorResponse(thrown);
      report(error, requestId, thrown);
      answerOnSocket(socket, errorAnswer(error, { requestId }));
    },
  };
}

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
