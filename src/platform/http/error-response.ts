import { randomUUID } from 'node:crypto';
import { HubError, type HubErrorCode } from '../errors.ts';

const statusByCode = {
  bad_request: 400,
  invalid_path: 400,
  unauthenticated: 401,
  forbidden: 403,
  csrf_failed: 403,
  recent_login_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  conflict: 409,
  gone: 410,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  misdirected: 421,
  server_not_running: 424,
  too_many_requests: 429,
  header_too_large: 431,
  internal: 500,
  spawn_failed: 500,
  not_implemented: 501,
  upstream_failed: 502,
  unavailable: 503,
  storage_unavailable: 503,
  upstream_timeout: 504,
  version_not_supported: 505,
} as const satisfies Record<HubErrorCode, number>;

export function isHubErrorCode(code: unknown): code is HubErrorCode {
  return typeof code === 'string' && Object.hasOwn(statusByCode, code);
}

/** What clients are told of a thrown value. */
export interface ErrorResponse {
  readonly status: number;
  readonly code: HubErrorCode;
  readonly message: string;
  readonly hint: string | undefined;
  /** What it says on pages, which have words of their own for an unforeseen error: clients of the hub load none. */
  readonly shown: HubError['shown'] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  /** Ties the answer to the log line of an unforeseen error. */
  readonly errorId: string | undefined;
  readonly isBug: boolean;
}

/** The only place where a thrown value becomes an HTTP status and a public text. */
export function toErrorResponse(thrown: unknown): ErrorResponse {
  if (thrown instanceof HubError) {
    const { code, message, hint, shown, retryAfterSeconds, details } = thrown;
    const status = statusByCode[code];
    const isBug = code === 'internal';
    const errorId = isBug ? randomUUID() : undefined;
    return { status, code, message, hint, shown, retryAfterSeconds, details, errorId, isBug };
  }
  const hint = 'Try again; if it happens again, tell your administrator the id of this error.';
  const unforeseen = new HubError('internal', 'Something went wrong inside the hub.', { hint });
  return { ...toErrorResponse(unforeseen), shown: undefined };
}

/** The JSON body of an error, the same shape everywhere; `more` is for those who know what to do with it. */
export function errorBody(response: ErrorResponse, more: object = {}): string {
  const { status, code, message, hint, errorId, details } = response;
  return JSON.stringify({ ...details, ...more, status, code, message, hint, error_id: errorId });
}
