import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

/** An answer with its whole body. */
export interface TextAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Asks over HTTP on a connection of its own and follows no redirect. Throws what the connection failed with, the
 * reason of the signal as its cause, and RangeError for an answer that is longer than it may be.
 */
export async function requestText(
  url: URL,
  options: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly signal: AbortSignal;
    readonly maxAnswerBytes: number;
  },
): Promise<TextAnswer> {
  const { method = 'GET', headers = {}, body, signal, maxAnswerBytes } = options;
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const asked = request(url, { method, headers, signal, agent: false }).end(body);
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
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
