import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HubError, type HubErrorCode } from '../errors.ts';

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

/** How long a client has to take in the answer before its connection is cut. */
const graceMs = 2_000;

/** A connection whose answers are not text, as a stream of HTTP/2. */
export interface AnsweringSocket {
  /** Answers the request under way whole, or cuts it off where its answer has begun. */
  answer(answer: Answer): void;
}

/**
 * Answers an upgrade request with a plain HTTP response and closes the connection: after an upgrade
 * there is no `ServerResponse` to do so, and a socket that is merely ended stays open on its other half.
 */
export function answerOnSocket(socket: Duplex | AnsweringSocket, answer: Answer): void {
  if ('answer' in socket) {
    socket.answer(answer);
    return;
  }
  const { status, headers, body } = answer;
  // Since the upgrade there is no other listener, and an error without a listener ends the process.
  socket.on('error', () => {});
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  noteUpgradeStatus(socket, status);
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
  for (const [name, value] of Object.entries(headers)) {
    if (name === 'connection') continue;
    for (const item of [value].flat()) head += `${name}: ${oneLine(item)}\r\n`;
  }
  head += `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`;
  // Unread input would turn the close into a reset, which can overtake the answer.
  socket.resume();
  socket.once('end', () => destroySoon(socket));
  const timer = setTimeout(() => socket.destroy(), graceMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  socket.end(head + body);
}

/** Answers on a socket with an error in the JSON shape of the API. */
export function answerErrorOnSocket(socket: Duplex, error: HubError, requestId?: string): void {
  answerOnSocket(socket, errorAnswer(toErrorResponse(error), { requestId }));
}

/** Closes when everything is written; what is not a network socket is closed at once. */
function destroySoon(socket: Duplex & Partial<Pick<Socket, 'destroySoon'>>): void {
  if (socket.destroySoon === undefined) socket.destroy();
  else socket.destroySoon();
}

function oneLine(value: string): string {
  return value.replace(/[\r\n]/g, ' ');
}

const key = Symbol('upgrade status');
type Upgraded = Duplex & { [key]?: number };

/** Notes with which status a request to upgrade was answered, for which no response exists. */
export function noteUpgradeStatus(socket: Upgraded, status: number): void {
  socket[key] = status;
}

/** The status that was noted; undefined when there was no answer. */
export function upgradeStatusOf(socket: Upgraded): number | undefined {
  return socket[key];
}
