import { ExchangeFailure } from './exchange-failure.ts';
import type { ResponseHeaders } from './response-head.ts';
import type { UpstreamPool } from './upstream-pool.ts';
import type { ExchangeControl, UpstreamRequest } from './upstream-request.ts';

/** How an upstream begins its answer. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
}

/**
 * Sends a request and breaks off after the head of its answer: the body has no use and may have no end.
 * Rejects with what an exchange fails with, at the latest after the timeout.
 */
export function requestHeadOnly(
  pool: UpstreamPool,
  { request, timeoutMs }: { readonly request: UpstreamRequest; readonly timeoutMs: number },
): Promise<AnswerHead> {
  return new Promise((resolve, reject) => {
    let control: ExchangeControl | undefined;
    const timer = setTimeout(() => {
      control?.abort();
      reject(new ExchangeFailure('UPSTREAM_HEADERS_TIMEOUT', 'No answer began in time.'));
    }, timeoutMs);
    pool.dispatch(request, {
      onRequestStart(started) {
        control = started;
      },
      onResponseStarted() {},
      onResponseStart(status, headers) {
        clearTimeout(timer);
        resolve({ status, headers });
        control?.abort();
      },
      onResponseData() {},
      onResponseEnd() {},
      onResponseError(error) {
        clearTimeout(timer);
        reject(error);
      },
    });
  });
}
