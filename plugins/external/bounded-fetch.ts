/** Fetches from a provider. Fits both `openid-client` and `jose`. */
export type BoundedFetch = (url: string, init: ProviderRequest) => Promise<Response>;

interface ProviderRequest {
  readonly method: string;
  readonly headers: Headers | Record<string, string>;
  readonly body?:
    | ArrayBuffer
    | ReadableStream
    | string
    | Uint8Array
    | URLSearchParams
    | null
    | undefined;
  readonly signal?: AbortSignal | undefined;
}

const largestAnswerBytes = 1024 * 1024;

/**
 * Creates a fetch for providers that the operator does not control: an answer that is too large is not read
 * to its end, one that never comes is given up, redirects are not followed, and plain http is
 * refused but for loopback addresses, and there only when the operator allowed it.
 */
export function createBoundedFetch(options: {
  readonly allowsLoopbackHttp: boolean;
  readonly timeoutMs: number;
}): BoundedFetch {
  return async (url, init) => {
    const { protocol, hostname } = new URL(url);
    const isAllowed =
      protocol === 'https:' ||
      (protocol === 'http:' && options.allowsLoopbackHttp && isLoopbackHost(hostname));
    if (!isAllowed) throw new TypeError(`only https is allowed for ${protocol}//${hostname}`);

    const timeout = AbortSignal.timeout(options.timeoutMs);
    const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
    const { method, headers: sent } = init;
    const body = (init.body ?? null) as NonNullable<RequestInit['body']> | null;
    const response = await fetch(url, { method, headers: sent, body, redirect: 'manual', signal });
    if (response.body === null) return response;
    if (Number(response.headers.get('content-length') ?? 0) > largestAnswerBytes) {
      await response.body.cancel();
      throw new AnswerTooLarge();
    }
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(limiter()), { status, statusText, headers });
  };
}

/** Whether a host name is this machine itself. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
  constructor() {
    super(`the answer of the provider is larger than ${largestAnswerBytes} bytes`);
  }
}

/** Counts what arrives after decompression, so that a small answer cannot become a large one. */
function limiter(): TransformStream<Uint8Array, Uint8Array> {
  let byteCount = 0;
  return new TransformStream({
    transform(chunk, controller) {
      byteCount += chunk.byteLength;
      if (byteCount > largestAnswerBytes) controller.error(new AnswerTooLarge());
      else controller.enqueue(chunk);
    },
  });
}
