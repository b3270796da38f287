/** How an exchange with an upstream can fail beside the errors of its socket. */
export type ExchangeFailureCode =
  /** The upstream closed the connection before its answer was whole. */
  | 'UPSTREAM_CLOSED'
  /** The pool was closed. */
  | 'UPSTREAM_GONE'
  | 'UPSTREAM_CONNECT_TIMEOUT'
  | 'UPSTREAM_HEADERS_TIMEOUT'
  | 'UPSTREAM_BODY_TIMEOUT'
  /** What came is no HTTP/1.1 answer. */
  | 'UPSTREAM_BAD_RESPONSE'
  /** The request holds what HTTP/1.1 cannot carry. */
  | 'UPSTREAM_BAD_REQUEST';

/** Why an exchange with an upstream failed; the message is for the log. */
export class ExchangeFailure extends Error {
  override readonly name = 'ExchangeFailure';
  readonly code: ExchangeFailureCode;

  constructor(code: ExchangeFailureCode, message: string) {
    super(message);
    this.code = code;
  }
}
