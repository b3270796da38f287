import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorResponse, errorBody } from './error-response.ts';

/** A whole answer, for a response (`writeAnswer`) or a bare socket (`answerOnSocket`). */
export interface Answer {
  readonly status: number;
  /** By lower-case name, without the framing. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string;
}

/** Makes the answer to a failure: a page where one is given, else the JSON of the API. */
export function errorAnswer(
  error: ErrorResponse,
  options: {
    readonly page?: string | undefined;
    readonly requestId?: string | undefined;
    readonly headers?: Answer['headers'];
  } = {},
): Answer {
  const { page, requestId } = options;
  const { status } = error;
  return {
    status,
    headers: {
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      ...retryAfterHeader(error),
      // The rest of a body that came too slowly or is too large must not be taken for a request.
      ...((status === 408 || status === 413) && { connection: 'close' }),
      ...options.headers,
      ...(requestId !== undefined && { 'x-request-id': requestId }),
      'content-type': page === undefined ? 'application/json' : 'text/html; charset=utf-8',
    },
    body: page ?? errorBody(error),
  };
}

/** When another attempt makes sense, if that is known. */
export function retryAfterHeader({
  retryAfterSeconds,
}: Pick<ErrorResponse, 'retryAfterSeconds'>): Record<string, string> {
  return retryAfterSeconds === undefined
    ? {}
    : { 'retry-after': String(Math.ceil(retryAfterSeconds)) };
}

/** Writes an answer whole, or cuts the connection where another one has begun. */
export function writeAnswer(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
  if (res.headersSent || res.writableEnded || res.destroyed) {
    res.destroy();
    return;
  }
  res.statusCode = answer.status;
  for (const [name, value] of Object.entries(answer.headers)) res.setHeader(name, value);
  // What is left of an upload that is not read must not be taken for the next request.
  const { 'transfer-encoding': encoding, 'content-length': length } = req.headers;
  if ((encoding !== undefined || length !== undefined) && !req.complete) {
    res.setHeader('connection', 'close');
  }
  res.setHeader('content-length', Buffer.byteLength(answer.body));
  res.end(req.method === 'HEAD' ? undefined : answer.body);
}
