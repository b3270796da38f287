import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { lookupUpstream } from '../../../platform/addresses/upstream-lookup.ts';

/**
 * Asks a client at an address of its own: never by a name where machines keep their credentials, following no redirect.
 * With a form it is a POST, whose answer is not read. Throws where there is no answer or too long a one, and when `signal`
 * is aborted.
 */
export async function requestClient(
  url: string,
  signal: AbortSignal,
  {
    form,
    lookup = lookupUpstream,
    maxAnswerBytes = 64 * 1024,
  }: {
    readonly form?: Readonly<Record<string, string>>;
    readonly lookup?: LookupFunction;
    readonly maxAnswerBytes?: number;
  } = {},
): Promise<{ readonly status: number; readonly body: string }> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  const sent = request(url, {
    method: form === undefined ? 'GET' : 'POST',
    agent: false,
    lookup,
    signal,
    headers:
      form === undefined
        ? { accept: 'application/json' }
        : { 'content-type': 'application/x-www-form-urlencoded' },
  }).end(form && new URLSearchParams(form).toString());
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const status = answer.statusCode ?? 0;
  if (form !== undefined || status !== 200) {
    answer.on('error', () => undefined).destroy();
    return { status, body: '' };
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxAnswerBytes)
      throw new RangeError(`${url} answers with more than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return { status, body: Buffer.concat(chunks).toString() };
}
