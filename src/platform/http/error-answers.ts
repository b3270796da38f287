import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { errorAnswer, writeAnswer } from './answer.ts';
import { prefersHtml } from './content-negotiation.ts';
import { type ErrorResponse, toErrorResponse } from './error-response.ts';
import { recordOf } from './request-log.ts';
import { securityHeaderValues } from './security-headers.ts';
import { answerOnSocket } from './socket-response.ts';

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
  readonly isHttps: boolean;
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
