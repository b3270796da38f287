import { once } from 'node:events';
import {
  type Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import type { TlsIdentity } from '../../platform/internal-tls/internal-authority.ts';

/** An answer with its whole body. */
export interface TextAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface RequestOptions extends Partial<TlsIdentity> {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Without one, each request has a connection of its own. */
  readonly agent?: Agent;
}

/**
 * Asks over HTTP and follows no redirect; resolves to an answer whose body is yet to come. Both throw what the connection
 * failed with, the reason of the signal as its cause.
 */
export async function requestAnswer(url: URL, options: RequestOptions): Promise<IncomingMessage> {
  const { method = 'GET', headers = {}, body, agent = false, ...rest } = options;
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const asked = request(url, { ...rest, method, headers, agent }).end(body);
  // What comes after the head fails the answer too.
  asked.on('error', () => {});
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return answer;
}

/** As `requestAnswer`, with its whole body. Throws RangeError for one that is longer than it may be. */
export async function requestText(
  url: URL,
  { maxAnswerBytes, ...options }: RequestOptions & { readonly maxAnswerBytes: number },
): Promise<TextAnswer> {
  const answer = await requestAnswer(url, options);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new RangeError('the answer is too long');
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString();
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}
