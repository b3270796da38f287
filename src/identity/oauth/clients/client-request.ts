import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { lookupPublic, mayBePublic } from '../../../platform/addresses/public-lookup.ts';
import { lookupUpstream } from '../../../platform/addresses/upstream-lookup.ts';

/** Which addresses are asked: those that are reached from anywhere, or any but those where machines keep credentials. */
export type ClientHosts = 'public' | 'any';

/**
 * Asks a client at an address of its own, following no redirect. What its name means is looked at when it is connected to:
 * it may have meant another address before. With a form it is a POST, whose answer is not read. Throws where `hosts`
 * leaves the address out, where there is no answer or too long a one, and when `signal` is aborted.
 */
export async function requestClient(
  url: string,
  signal: AbortSignal,
  {
    hosts = 'any',
    form,
    maxAnswerBytes = 64 * 1024,
  }: {
    readonly hosts?: ClientHosts | undefined;
    readonly form?: Readonly<Record<string, string>>;
    readonly maxAnswerBytes?: number;
  } = {},
): Promise<{ readonly status: number; readonly body: string }> {
  const isPublicOnly = hosts === 'public';
  if (isPublicOnly && !mayBePublic(new URL(url).hostname))
    throw new Error(`the address of ${url} is not public`);
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  const sent = request(url, {
    method: form === undefined ? 'GET' : 'POST',
    agent: false,
    lookup: isPublicOnly ? lookupPublic : lookupUpstream,
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
